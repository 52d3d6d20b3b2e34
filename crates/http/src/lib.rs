//! What clients of servers have in common: addresses, answers, and how long to try again.
//!
//! Nothing is sent but to the address that was named: redirects are not followed, and what is on this machine is
//! not reached by way of another.

use std::thread;
use std::time::Duration;

use ureq::http::{Response, Uri};
use ureq::{Agent, Body};

/// How much is shown of what another program says.
const MAX_MESSAGE: usize = 300;

/// Sends requests to one address.
pub fn agent(address: &Uri, timeout: Duration) -> Agent {
    let proxy = if is_loopback(address) {
        None
    } else {
        ureq::Proxy::try_from_env()
    };
    Agent::config_builder()
        .proxy(proxy)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(timeout))
        .user_agent("quipu")
        .build()
        .new_agent()
}

/// Whether an address is on this machine.
pub fn is_loopback(address: &Uri) -> bool {
    address.host().is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address: Option<std::net::IpAddr> = host.parse().ok();
        host.eq_ignore_ascii_case("localhost") || address.is_some_and(|it| it.is_loopback())
    })
}

/// Why a text is not an address that can be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressError {
    /// It is not a URL.
    NotAUrl,
    /// It begins with something else than `http://` or `https://`.
    Scheme,
    /// It names no host.
    NoHost,
    /// Its port does not exist.
    Port,
}

/// An address, without white space around it.
pub fn address(text: &str) -> Result<Uri, AddressError> {
    let uri: Uri = text.trim().parse().map_err(|_| AddressError::NotAUrl)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(AddressError::Scheme);
    }
    let authority = uri.authority().map_or("", |it| it.as_str());
    let host = authority.rsplit_once('@').map_or(authority, |it| it.1);
    if host.is_empty() {
        return Err(AddressError::NoHost);
    }
    // A port of more than 65535 would be taken for none.
    let port = host.rsplit_once(':').map(|(_, port)| port);
    let port = port.filter(|port| !port.is_empty() && !port.ends_with(']'));
    if port.is_some() && uri.port_u16().is_none_or(|port| port == 0) {
        return Err(AddressError::Port);
    }
    Ok(uri)
}

/// An answer, read.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
    /// The type of its body.
    pub kind: String,
    /// Its body; empty when that is too long or cannot be read. Whether something was taken is in the status.
    pub body: Vec<u8>,
}

impl Answer {
    /// Reads an answer, up to so many bytes.
    pub fn read(mut response: Response<Body>, most: u64) -> Self {
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            value.to_str().ok().map(ToOwned::to_owned)
        };
        let seconds = header("retry-after").and_then(|it| it.trim().parse().ok());
        let kind = header("content-type").unwrap_or_default();
        let status = response.status().as_u16();
        let reader = response.body_mut().with_config().limit(most);
        Self {
            status,
            retry_after: seconds.map(Duration::from_secs),
            kind,
            body: reader.read_to_vec().unwrap_or_default(),
        }
    }

    /// Whether the server took it.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether the server sends elsewhere.
    pub fn is_redirect(&self) -> bool {
        (300..400).contains(&self.status)
    }
}

/// How often something is tried, and how long is waited in between: twice as long each time, unless the server says.
#[derive(Debug, Clone)]
pub struct Patience {
    tried: u32,
    attempts: u32,
    wait: Duration,
    longest: Duration,
}

impl Patience {
    /// So many attempts, with such a wait before the second and none that is longer than the longest.
    pub fn new(attempts: u32, first: Duration, longest: Duration) -> Self {
        Self {
            tried: 0,
            attempts,
            wait: first,
            longest,
        }
    }

    /// How many attempts are over, with the one that is going on.
    pub fn attempts(&self) -> u32 {
        self.tried + 1
    }

    /// Waits before another attempt. Whether there is one.
    #[must_use]
    pub fn wait(&mut self, asked: Option<Duration>) -> bool {
        self.tried += 1;
        if self.tried >= self.attempts {
            return false;
        }
        thread::sleep(asked.unwrap_or(self.wait).min(self.longest));
        self.wait = self.wait.saturating_mul(2);
        true
    }
}

/// What another program says, for a line of a terminal. Take secrets out before: half of one would not be found.
pub fn one_line(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let plain: String = plain.take(MAX_MESSAGE).collect();
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn addresses_are_read_and_the_reason_is_told_where_they_are_not() {
        for (text, loopback) in [
            ("http://localhost:4318", true),
            (" https://127.0.0.1/x ", true),
            ("http://ada:pw@[::1]:8080/", true),
            ("https://a.example", false),
            ("http://127.0.0.1.example", false),
        ] {
            assert_eq!(is_loopback(&address(text).unwrap()), loopback, "{text}");
        }
        for (text, why) in [
            ("", AddressError::NotAUrl),
            ("a b", AddressError::NotAUrl),
            ("ftp://a.example", AddressError::Scheme),
            ("a.example", AddressError::Scheme),
            ("https://a.example:99999", AddressError::Port),
            ("https://a.example:0", AddressError::Port),
        ] {
            assert_eq!(address(text).unwrap_err(), why, "{text}");
        }
    }

    #[test]
    fn patience_ends_and_no_wait_is_longer_than_the_longest() {
        let begun = Instant::now();
        let mut patience = Patience::new(3, Duration::from_secs(3600), Duration::from_millis(1));
        assert_eq!(patience.attempts(), 1);
        assert!(patience.wait(None));
        assert!(patience.wait(Some(Duration::from_secs(3600))));
        assert_eq!(patience.attempts(), 3);
        assert!(!patience.wait(None));
        assert!(begun.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn what_others_say_is_short_and_on_one_line() {
        assert_eq!(one_line(" a\n\x1b[31mb "), "a  [31mb");
        assert_eq!(one_line(&"é".repeat(1000)).chars().count(), MAX_MESSAGE);
    }
}
