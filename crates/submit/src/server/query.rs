//! What is asked for behind the question mark of an address.

use quipu_model::Timestamp;

use super::answer::Problem;
use crate::keys::KeyId;
use crate::protocol::{Code, Listed, TranscriptId};

/// The most transcripts of a page.
const MOST: usize = 200;
/// How many a page has unless it is said.
const USUAL: usize = 50;
/// The longest query that is read.
const MAX_QUERY: usize = 4096;

/// Which transcripts are asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) limit: usize,
    pub(super) after: Option<TranscriptId>,
    pub(super) pseudonym: Option<String>,
    pub(super) key_id: Option<String>,
    pub(super) agent: Option<String>,
    /// Taken at or after this.
    pub(super) since: Option<Timestamp>,
    /// Taken before this.
    pub(super) until: Option<Timestamp>,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            limit: USUAL,
            after: None,
            pseudonym: None,
            key_id: None,
            agent: None,
            since: None,
            until: None,
        }
    }
}

impl Asked {
    /// Reads a query. Unknown names are rejected: a filter that is mistyped would show too much.
    pub(super) fn parse(query: &str) -> Result<Self, Problem> {
        let bad = |message: String| Problem::new(Code::BadRequest, message);
        if query.len() > MAX_QUERY {
            return Err(bad(format!("a query has at most {MAX_QUERY} bytes")));
        }
        let mut asked = Self::default();
        let mut seen = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value)
                .ok_or_else(|| bad("the query is not percent-encoded UTF-8".to_owned()))?;
            let time = |name: &str| {
                let message = format!("{name} is a time such as 2026-06-22T10:00:00Z");
                value.parse::<Timestamp>().map_err(|_| bad(message))
            };
            match name {
                "limit" => {
                    let limit = value.parse().ok().filter(|n| (1..=MOST).contains(n));
                    asked.limit =
                        limit.ok_or_else(|| bad(format!("limit is a number from 1 to {MOST}")))?;
                }
                "after" => {
                    let after = TranscriptId::parse(&value);
                    let message = "after is the `next` of the page before".to_owned();
                    asked.after = Some(after.map_err(|_| bad(message))?);
                }
                "pseudonym" => asked.pseudonym = Some(value),
                "keyId" => {
                    if KeyId::parse(&value).is_none() {
                        return Err(bad("keyId is `key_` and 12 hex digits".to_owned()));
                    }
                    asked.key_id = Some(value);
                }
                "agent" => asked.agent = Some(value),
                "since" => asked.since = Some(time("since")?),
                "until" => asked.until = Some(time("until")?),
                _ => {
                    let known = "limit, after, pseudonym, keyId, agent, since and until";
                    return Err(bad(format!("a list can be asked for {known}")));
                }
            }
            if seen.contains(&name) {
                return Err(bad(format!("{name} is given twice")));
            }
            seen.push(name);
        }
        Ok(asked)
    }

    /// Whether a transcript is among what is asked for.
    pub(super) fn has(&self, listed: &Listed) -> bool {
        let receipt = &listed.receipt;
        let is =
            |asked: &Option<String>, value: &str| asked.as_deref().is_none_or(|it| it == value);
        is(&self.pseudonym, &receipt.pseudonym)
            && is(&self.key_id, &receipt.key_id)
            && self
                .agent
                .as_deref()
                .is_none_or(|it| listed.agent.as_deref() == Some(it))
            && self.since.is_none_or(|since| receipt.received_at >= since)
            && self.until.is_none_or(|until| receipt.received_at < until)
    }
}

/// A value without its escapes.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let value = digit()? * 16 + digit()?;
                u8::try_from(value).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Refusal;
    use crate::server::Response;

    fn refused(query: &str) -> String {
        let problem = Asked::parse(query).unwrap_err();
        let response = Response::from(problem);
        assert_eq!(response.status, 400, "{query}");
        let bytes = response.body.into_bytes().unwrap();
        serde_json::from_slice::<Refusal>(&bytes).unwrap().message
    }

    #[test]
    fn a_query_reads_or_is_refused_by_name() {
        assert_eq!(Asked::parse("").unwrap(), Asked::default());
        let asked = Asked::parse(
            "limit=7&agent=claude%2Dcode&since=2026-06-22T10%3A00%3A00Z&keyId=key_2a9f0c51b7d3&after=abcdefgh",
        )
        .unwrap();
        assert_eq!(
            (asked.limit, asked.agent.as_deref()),
            (7, Some("claude-code"))
        );
        assert_eq!(asked.since.unwrap().to_string(), "2026-06-22T10:00:00Z");
        for (query, named) in [
            ("limit=0", "limit"),
            ("limit=201", "limit"),
            ("limit=1&limit=2", "limit"),
            ("after=../x", "after"),
            ("since=yesterday", "since"),
            ("until=", "until"),
            ("keyId=x", "keyId"),
            ("pseudo=anon", "pseudonym"),
            ("agent=%ff", "percent"),
            ("agent=%f", "percent"),
        ] {
            assert!(refused(query).contains(named), "{query}");
        }
        assert!(refused(&"a".repeat(5000)).contains("bytes"));
    }
}
