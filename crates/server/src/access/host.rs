//! The names that the server goes by.
//!
//! A page of another site can have its own name resolve to 127.0.0.1 (DNS rebinding). Its requests then reach this server, with that
//! name in `Host`. So a request has to name the server by a name that is the server's own.

use std::net::IpAddr;

use http::uri::Authority;

/// The names that the server goes by.
#[derive(Debug, Clone, Default)]
pub struct HostNames {
    /// Lower case, without a port.
    extra: Vec<String>,
    /// Whether any IP address will do: a request that names an address was not led here by a name.
    addresses: bool,
}

impl HostNames {
    /// Loopback's names, and these. With `addresses`, every IP address as well, for servers beyond loopback.
    pub fn new(extra: &[String], addresses: bool) -> Self {
        Self {
            extra: extra.iter().map(|name| name.to_ascii_lowercase()).collect(),
            addresses,
        }
    }

    /// Whether a `Host` header has one of the names that the server was told to go by. Programs on this machine use
    /// loopback's.
    pub fn is_public(&self, host: &str) -> bool {
        let name = plain(host);
        name.is_some_and(|name| self.extra.contains(&name))
    }

    /// Whether a `Host` header names this server.
    pub fn has(&self, host: &str) -> bool {
        let Some(name) = plain(host) else {
            return false;
        };
        if let Ok(address) = name.parse::<IpAddr>() {
            return address.is_loopback() || self.addresses;
        }
        name == "localhost" || self.extra.contains(&name)
    }

    /// Whether an `Origin` header is a page of this server, which was asked as `host`.
    pub fn is_own(&self, origin: &str, host: Option<&str>) -> bool {
        let rest = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        let Some(authority) = rest else {
            return false;
        };
        self.has(authority) && host.is_some_and(|host| host.eq_ignore_ascii_case(authority))
    }
}

/// The name in a `Host` header: lower case, without a port.
fn plain(host: &str) -> Option<String> {
    // `user@host` is not a host.
    if host.contains('@') {
        return None;
    }
    let authority = host.parse::<Authority>().ok()?;
    let name = authority.host().trim_matches(['[', ']']);
    let name = name.trim_end_matches('.');
    Some(name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_are_taken() {
        let names = HostNames::new(&["Quipu.example".to_owned()], false);
        for host in [
            "localhost",
            "localhost:7847",
            "LOCALHOST:1",
            "127.0.0.1:7847",
            "127.8.8.8",
            "[::1]:7847",
            "quipu.example",
            "quipu.example.:443",
        ] {
            assert!(names.has(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "evil@localhost",
            "localhost/x",
            "local host",
            "[::1",
            "::1",
        ] {
            assert!(!names.has(host), "{host}");
        }
        assert!(HostNames::new(&[], true).has("10.0.0.1:80"));
    }

    #[test]
    fn an_origin_is_own_only_at_the_same_name_and_port() {
        let names = HostNames::new(&[], false);
        assert!(names.is_own("http://127.0.0.1:7847", Some("127.0.0.1:7847")));
        assert!(names.is_own("https://localhost", Some("localhost")));
        for origin in [
            "null",
            "http://evil.example",
            "http://127.0.0.1:1",
            "http://localhost:7847",
            "file://",
            "http://127.0.0.1:7847/",
        ] {
            assert!(!names.is_own(origin, Some("127.0.0.1:7847")), "{origin}");
        }
        assert!(!names.is_own("http://127.0.0.1:7847", None));
    }
}
