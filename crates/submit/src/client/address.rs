//! The address of a server.

use ureq::http::Uri;

use super::ClientError;

/// An address, as far as `/v1`.
pub(super) struct Address {
    base: String,
    is_loopback: bool,
}

impl Address {
    pub(super) fn parse(text: &str, plain_http: bool) -> Result<Self, ClientError> {
        let wrong = ClientError::Address;
        let text = text.trim();
        let uri: Uri = text
            .parse()
            .map_err(|_| wrong("it is not a URL, such as https://transcripts.example"))?;
        let scheme = uri.scheme_str().unwrap_or_default();
        if !matches!(scheme, "http" | "https") {
            return Err(wrong("it does not begin with https://"));
        }
        let authority = uri.authority().map_or("", |it| it.as_str());
        if authority.contains('@') {
            return Err(wrong(
                "it names a user; a submission key is all that is sent",
            ));
        }
        if authority.is_empty() {
            return Err(wrong("it names no host"));
        }
        if uri.query().is_some() {
            return Err(wrong(
                "it has a query; the server's address is what /v1 is under",
            ));
        }
        // A port of more than 65535 would be taken for none.
        let port = authority.rsplit_once(':').map(|(_, port)| port);
        let port = port.filter(|port| !port.is_empty() && !port.ends_with(']'));
        if port.is_some() && uri.port_u16().is_none_or(|port| port == 0) {
            return Err(wrong("there is no such port"));
        }
        let is_loopback = uri.host().is_some_and(is_loopback);
        if scheme == "http" && !is_loopback && !plain_http {
            return Err(wrong(
                "without TLS, the key and the transcript can be read on the way: it is https:// that is needed",
            ));
        }
        let path = uri.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path);
        Ok(Self {
            base: format!("{scheme}://{authority}{path}"),
            is_loopback,
        })
    }

    /// The address of something under `/v1`.
    pub(super) fn of(&self, what: &str) -> String {
        format!("{}/v1/{what}", self.base)
    }

    /// What may be shown of it: all.
    pub(super) fn shown(&self) -> &str {
        &self.base
    }

    pub(super) fn is_loopback(&self) -> bool {
        self.is_loopback
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address: Option<std::net::IpAddr> = host.parse().ok();
    host.eq_ignore_ascii_case("localhost") || address.is_some_and(|it| it.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_only_this_machine_is_spoken_to() {
        for (text, plain, base) in [
            ("https://a.example/", false, "https://a.example"),
            ("https://a.example/x/v1", false, "https://a.example/x"),
            ("http://127.0.0.1:8080", false, "http://127.0.0.1:8080"),
            ("http://[::1]:1/x/", false, "http://[::1]:1/x"),
            ("http://localhost", false, "http://localhost"),
            ("http://a.example", true, "http://a.example"),
        ] {
            let address = Address::parse(text, plain).ok().unwrap();
            assert_eq!(address.shown(), base);
            assert_eq!(address.of("limits"), format!("{base}/v1/limits"));
        }
        for (text, why) in [
            ("http://a.example", "without TLS"),
            ("http://127.0.0.1.example", "without TLS"),
            ("https://ada:pw@a.example", "names a user"),
            ("https://a.example/?key=x", "query"),
            ("https://a.example:99999", "no such port"),
            ("ftp://a.example", "https://"),
            ("a.example", "https://"),
            ("", "not a URL"),
        ] {
            let error = Address::parse(text, false).err().unwrap();
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
    }
}
