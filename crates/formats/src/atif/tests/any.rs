use proptest::prelude::*;
use quipu_model::Event;

use super::{validator, written};
use crate::arbitrary;

fn spent(events: &[Event]) -> u128 {
    let usages = events.iter().filter_map(|event| event.annotations.usage);
    let parts = usages.flat_map(|usage| [usage.input, usage.cache_read, usage.cache_write]);
    parts.flatten().map(u128::from).sum()
}

/// The numbers of this name, wherever they stand.
fn sum_of(text: &str, name: &str) -> u128 {
    let key = format!("\"{name}\":");
    let parts = text.split(&key).skip(1);
    let digits = parts.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    digits
        .flatten()
        .filter_map(|digits| digits.parse::<u128>().ok())
        .sum()
}

proptest! {
    #[test]
    fn any_session_is_a_valid_trajectory((header, events) in arbitrary::session()) {
        let (text, loss) = written(&header, &events);
        prop_assert_eq!(validator::wrongs(&text), Vec::<String>::new(), "{}", text);
        prop_assert_eq!(loss.events, events.len() as u64);
        prop_assert_eq!(loss.carried, loss.events);
        prop_assert_eq!(&written(&header, &events).0, &text);
        let found = super::super::verify(&text);
        let errors: Vec<_> = found.iter().filter(|it| it.severity == super::super::verify::Severity::Error).collect();
        prop_assert!(errors.is_empty(), "{:?}", errors);
        prop_assert_eq!(sum_of(&text, "total_prompt_tokens"), spent(&events));
    }
}
