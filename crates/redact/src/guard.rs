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

    /// A path without what was found in it. For most rules what is behind a slash is part of a value, so each name of a
    /// path that gives something a value is looked at by itself as well.
    pub fn mask_path<'t>(&self, path: &'t str) -> Cow<'t, str> {
        let whole = self.mask(path, None);
        let gives = |name: &str| name.contains(['=', ':', ' ']);
        if !whole.contains('/') || !gives(&whole) {
            return whole;
        }
        let names: Vec<Cow<'_, str>> = whole
            .split('/')
            .map(|name| {
                if gives(name) {
                    self.mask(name, None)
                } else {
                    Cow::Borrowed(name)
                }
            })
            .collect();
        if names.iter().all(|name| matches!(name, Cow::Borrowed(_))) {
            drop(names);
            return whole;
        }
        Cow::Owned(names.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::expand;

    #[test]
    fn a_secret_in_a_path_is_hidden_whatever_is_behind_it() {
        let guard = Guard::secrets().unwrap();
        for template in [
            "BYBIT_API_SECRET={alnum:36}",
            "ghp_{alnum:36}",
            "PHABRICATOR_TOKEN=api-{lownum:28}",
        ] {
            let name = expand(template, 3).unwrap().text;
            let value = name.rsplit('=').next().unwrap();
            for path in [
                format!("/w/{name}"),
                format!("/w/{name}/session.jsonl"),
                format!("{name}/a/b"),
            ] {
                let masked = guard.mask_path(&path);
                assert!(!masked.contains(value), "{masked}");
            }
        }
        for path in ["/w/a=b/c.rs", "/home/ada/code: new/main.rs", "C:/x/y"] {
            assert!(matches!(guard.mask_path(path), Cow::Borrowed(_)), "{path}");
        }
    }
}
