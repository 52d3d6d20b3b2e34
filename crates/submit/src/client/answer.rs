//! What a server answers.

use std::time::Duration;

use serde::de::DeserializeOwned;
use ureq::Body;
use ureq::http::Response;

use crate::protocol::{Code, Refusal};

/// How much of an answer is read, and how much of what it says is shown.
const MAX_BODY: u64 = 256 << 10;
const MAX_MESSAGE: usize = 300;

/// An answer, read.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    body: Vec<u8>,
}

impl Answer {
    pub(super) fn read(mut response: Response<Body>) -> Self {
        let header = response.headers().get("retry-after");
        let seconds = header.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let status = response.status().as_u16();
        let reader = response.body_mut().with_config().limit(MAX_BODY);
        Self {
            status,
            retry_after: seconds.map(Duration::from_secs),
            // An answer that cannot be read says nothing.
            body: reader.read_to_vec().unwrap_or_default(),
        }
    }

    /// Why it is no success, where the server says it.
    pub(super) fn code(&self) -> Option<Code> {
        self.json::<Refusal>().map(|refusal| refusal.code)
    }

    pub(super) fn json<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// A text of another program, for a line of a terminal, without a key.
pub(super) fn clean(text: &str, key: &str) -> String {
    // Before it is cut: half of a secret would not be found. The secret is what stands behind the id.
    let secret = key.splitn(3, '_').nth(2).unwrap_or(key);
    let text = text.replace(key, "…").replace(secret, "…");
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let plain: String = plain.take(MAX_MESSAGE).collect();
    plain.trim().to_owned()
}
