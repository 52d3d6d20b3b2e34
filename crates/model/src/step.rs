//! Steps of workflows.

use std::fmt;
use std::ops::Deref;

use crate::Json;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)+) => {
        /// What a step does.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum StepKind {
            $($(#[$doc])* $variant,)+
            /// A type of step that an engine or a workflow defines; [`StepKind::from`] makes it.
            Custom(CustomKind),
        }

        impl StepKind {
            /// The kinds that have a name of their own.
            pub const NAMED: &'static [Self] = &[$(Self::$variant,)+];

            /// The word for it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Custom(CustomKind(word)) => word,
                }
            }

            fn named(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// The workflow itself, on `run.*` events.
    Workflow = "workflow",
    /// An agent is asked.
    Agent = "agent",
    /// A shell command runs.
    Command = "command",
    /// An operation of a plugin runs.
    Operation = "operation",
    /// The workflow ends.
    Terminal = "terminal",
    /// Several branches run at once.
    Parallel = "parallel",
    /// A loop over items.
    ForEach = "for_each",
    /// A loop while a condition holds.
    While = "while",
    /// Another workflow is called.
    CallWorkflow = "call_workflow",
}

impl StepKind {
    /// Whether its sub-steps run again and again.
    pub fn is_loop(&self) -> bool {
        matches!(self, Self::ForEach | Self::While)
    }
}

/// The word of a kind that has no name here. Only [`StepKind::from`] makes one, so that no kind has two forms.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CustomKind(String);

impl From<&str> for StepKind {
    fn from(word: &str) -> Self {
        Self::named(word).unwrap_or_else(|| Self::Custom(CustomKind(word.to_owned())))
    }
}

impl From<String> for StepKind {
    fn from(word: String) -> Self {
        Self::named(&word).unwrap_or(Self::Custom(CustomKind(word)))
    }
}

impl Deref for StepKind {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// A step, or the workflow itself on `run.*` events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The step's name in the workflow, or the workflow's name.
    pub name: String,
    /// What it does.
    pub kind: StepKind,
}

impl Step {
    /// A step by name and kind.
    pub fn new(name: impl Into<String>, kind: impl Into<StepKind>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
        }
    }

    /// The end of this step, without an error.
    pub fn succeeded(self, result: Option<Json>) -> StepEnd {
        StepEnd {
            step: self,
            error: None,
            result,
        }
    }

    /// The end of this step with an error.
    pub fn failed(self, error: impl Into<String>) -> StepEnd {
        StepEnd {
            step: self,
            error: Some(error.into()),
            result: None,
        }
    }
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepEnd {
    /// The step.
    pub step: Step,
    /// Why it failed; `None` when it did not.
    pub error: Option<String>,
    /// What it produced.
    pub result: Option<Json>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_one_kind() {
        for kind in StepKind::NAMED {
            assert_eq!(StepKind::from(kind.as_str()), *kind);
            assert_eq!(StepKind::from(kind.to_string()), *kind);
        }
        let own = StepKind::from("notify");
        assert_eq!(own, StepKind::Custom(CustomKind("notify".to_owned())));
        assert_eq!(own.to_string(), "notify");
        assert!(StepKind::While.is_loop() && !own.is_loop());
    }
}
