//! Token counts.
//!
//! The input is without what came from a cache or went into one. Whether the output is without the
//! reasoning depends on the version and the provider: up to 1.3 it mostly is not, since 1.4 it mostly is. The
//! total, where it is there, tells for each message.

use quipu_model::Usage;
use quipu_model::json::Node;
use serde::{Deserialize, Serialize};

use crate::session::Tokens;

/// Token counts in disjoint buckets, and whether they had a total that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) usage: Usage,
    /// What the total leaves for the output.
    pub(super) total_output: Option<u64>,
}

/// Reads token counts. `None` when there are none, or all of them are zero, as they are of a message that
/// is not finished.
pub(super) fn read(tokens: Node<'_>, version: Option<&str>) -> Option<Counts> {
    let count = |keys: &[&str]| tokens.path(keys).and_then(|n| n.as_u64());
    let (input, output) = (count(&["input"]), count(&["output"]));
    let (cache_read, cache_write) = (count(&["cache", "read"]), count(&["cache", "write"]));
    let reasoning = count(&["reasoning"]);
    let total = count(&["total"]);
    disjoint(
        Usage {
            input,
            cache_read,
            cache_write,
            cache_write_1h: None,
            output,
            reasoning,
        },
        total,
        version,
    )
}

/// Reads the sums that a row of a session has.
pub(super) fn read_columns(row: Node<'_>, version: Option<&str>) -> Option<Counts> {
    let count = |key: &str| row.get(key).and_then(|n| n.as_u64());
    let usage = Usage {
        input: count("tokens_input"),
        cache_read: count("tokens_cache_read"),
        cache_write: count("tokens_cache_write"),
        cache_write_1h: None,
        output: count("tokens_output"),
        reasoning: count("tokens_reasoning"),
    };
    disjoint(usage, None, version)
}

fn disjoint(said: Usage, total: Option<u64>, version: Option<&str>) -> Option<Counts> {
    let output = said.output.unwrap_or(0);
    let reasoning = said.reasoning.unwrap_or(0);
    let prompt = Usage {
        output: None,
        ..said
    };
    let all = output.saturating_add(reasoning);
    if prompt.total() == 0 && all == 0 {
        return None;
    }
    let rest = total.and_then(|total| total.checked_sub(prompt.total()));
    let whole = match rest {
        Some(rest) if rest == output || rest == all => rest,
        // The output was counted as less than the reasoning in it, and cut off at zero.
        Some(rest) if output == 0 && rest < reasoning => rest,
        _ if reasoning > output || is_additive(version) => all,
        _ => output,
    };
    let usage = Usage {
        output: said.output.map(|_| whole),
        reasoning: said.reasoning.map(|reasoning| reasoning.min(whole)),
        ..said
    };
    Some(Counts {
        usage,
        total_output: rest,
    })
}

/// Whether this version counts reasoning beside the output. One that is not known is taken to be new.
fn is_additive(version: Option<&str>) -> bool {
    let Some(version) = version else {
        return true;
    };
    let mut numbers = version
        .trim_start_matches('v')
        .split(['.', '-', '+'])
        .map(|number| number.parse::<u64>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= (1, 4),
        _ => true,
    }
}

/// The vendor's own sums: those of the totals of all calls, or else those that the session has.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    of_totals: Option<Tokens>,
    /// Whether a call had no total.
    incomplete: bool,
    of_session: Option<Tokens>,
}

impl Sums {
    /// Takes in a call.
    pub(super) fn add(&mut self, counts: &Counts) {
        let Some(output) = counts.total_output else {
            self.incomplete = true;
            return;
        };
        let mut sum: Usage = self.of_totals.unwrap_or_default().into();
        sum.add(&Usage {
            output: Some(output),
            ..counts.usage
        });
        self.of_totals = Some(sum.into());
    }

    /// Takes in the session's own sums.
    pub(super) fn session(&mut self, counts: Option<Counts>) {
        if let Some(counts) = counts {
            self.of_session = Some(counts.usage.into());
        }
    }

    /// The best there is.
    pub(super) fn best(&self) -> Option<Tokens> {
        self.of_totals
            .filter(|_| !self.incomplete)
            .or(self.of_session)
    }
}

#[cfg(test)]
mod tests {
    use quipu_model::json::Tape;

    use super::*;

    fn output(tokens: &str, version: &str) -> (Option<u64>, Option<u64>) {
        let mut tape = Tape::new();
        let counts = read(tape.read(tokens, 16).unwrap(), Some(version)).unwrap();
        (counts.usage.output, counts.usage.reasoning)
    }

    #[test]
    fn the_total_tells_whether_reasoning_is_in_the_output() {
        let inside =
            r#"{"total":130,"input":10,"output":20,"reasoning":5,"cache":{"read":100,"write":0}}"#;
        let beside =
            r#"{"total":135,"input":10,"output":20,"reasoning":5,"cache":{"read":100,"write":0}}"#;
        for version in ["1.2.3", "1.18.5"] {
            assert_eq!(output(inside, version), (Some(20), Some(5)));
            assert_eq!(output(beside, version), (Some(25), Some(5)));
        }
    }

    #[test]
    fn without_a_total_the_version_tells() {
        let tokens = r#"{"input":10,"output":20,"reasoning":5,"cache":{"read":0,"write":0}}"#;
        assert_eq!(output(tokens, "1.2.15"), (Some(20), Some(5)));
        assert_eq!(output(tokens, "1.3.17"), (Some(20), Some(5)));
        assert_eq!(output(tokens, "1.4.0"), (Some(25), Some(5)));
        assert_eq!(output(tokens, "1.18.12"), (Some(25), Some(5)));
        assert_eq!(output(tokens, "local"), (Some(25), Some(5)));
        // More reasoning than output can only be beside it.
        let more = r#"{"input":10,"output":2,"reasoning":5}"#;
        assert_eq!(output(more, "1.2.15"), (Some(7), Some(5)));
    }

    #[test]
    fn an_output_that_was_cut_off_at_zero() {
        let cut =
            r#"{"total":115,"input":10,"output":0,"reasoning":9,"cache":{"read":100,"write":0}}"#;
        assert_eq!(output(cut, "1.18.5"), (Some(5), Some(5)));
    }

    #[test]
    fn numbers_that_cannot_be() {
        let mut tape = Tape::new();
        for text in [
            r#"{"input":18446744073709551615,"output":18446744073709551615,"reasoning":18446744073709551615,"total":1}"#,
            r#"{"input":-1,"output":"x","cache":7}"#,
            "[]",
        ] {
            let _ = read(tape.read(text, 16).unwrap(), None);
        }
    }
}
