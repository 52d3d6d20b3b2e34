//! Hiding what was found in texts on their way to where nobody needs it: an index, a snippet, a screen.

use std::borrow::Cow;
use std::cell::RefCell;

use crate::engine::{Certainty, Context, Engine, Found, Scratch};
use crate::rule::Kind;
use crate::{Profile, RuleError, RuleSet};

/// Hides what rules find. Placeholders have no numbers: each text is on its own.
#[derive(Debug)]
pub struct Guard {
    engine: Engine,
}

thread_local! {
    static REUSED: RefCell<(Scratch, Vec<Found>)> = RefCell::default();
}

impl Guard {
    /// Hides what an engine finds.
    pub fn new(engine: Engine) -> Self {
        Self { engine }
    }

    /// Hides secrets, by the rules that come with Quipu.
    ///
    /// # Errors
    ///
    /// None, unless those rules are broken.
    pub fn secrets() -> Result<Self, RuleError> {
        let engine = Engine::new(&RuleSet::builtin(), |rule| rule.kind == Kind::Secret)?;
        Ok(Self::new(engine))
    }

    /// Hides what a profile has removed.
    ///
    /// # Errors
    ///
    /// A rule that cannot be used.
    pub fn of(profile: &Profile, rules: &RuleSet) -> Result<Self, RuleError> {
        Ok(Self::new(Engine::new(rules, |rule| profile.wants(rule))?))
    }

    /// The rules.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The text without what was found in it. `name` is what the text is the value of.
    pub fn mask<'t>(&self, text: &'t str, name: Option<&str>) -> Cow<'t, str> {
        REUSED.with_borrow_mut(|(scratch, found)| {
            found.clear();
            let context = Context {
                name,
                ..Context::default()
            };
            self.engine.scan(scratch, text, context, found);
            found.retain(|found| found.certainty == Certainty::Sure);
            if found.is_empty() {
                return Cow::Borrowed(text);
            }
            let mut masked = String::with_capacity(text.len());
            let mut from = 0;
            for found in found.iter() {
                let label = &self.engine.rules().rules[found.rule].label;
                masked.push_str(&text[from..found.span.start]);
                masked.push_str("[REDACTED:");
                masked.push_str(label);
                masked.push(']');
                from = found.span.end;
            }
            masked.push_str(&text[from..]);
            Cow::Owned(masked)
        })
    }
}
