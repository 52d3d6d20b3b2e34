//! Where in a workflow something happened.

use std::fmt::Write as _;

/// Where in a workflow an event belongs: which step, in which pass through the loops around it, at which attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Dot-separated step path, e.g. `build.lint`; empty for the run itself.
    pub path: String,
    /// Zero-based iterations of the loops around the step, outermost first; empty outside loops. A format that has
    /// one number for it does not tell the first iteration from a step outside loops: that is read as empty.
    pub iterations: Vec<u64>,
    /// Which attempt at the step this is, from 1.
    pub attempt: u64,
}

impl Default for Place {
    fn default() -> Self {
        Self::step("")
    }
}

impl Place {
    /// The run itself.
    pub fn run() -> Self {
        Self::default()
    }

    /// A step outside loops, at the first attempt.
    pub fn step(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            iterations: Vec::new(),
            attempt: 1,
        }
    }

    /// A step by the iteration of its innermost loop, as formats say it that have one number for it. Zero also
    /// means "outside loops" there.
    pub fn flat(path: impl Into<String>, iteration: u64) -> Self {
        let mut place = Self::step(path);
        if iteration > 0 {
            place.iterations.push(iteration);
        }
        place
    }

    /// The same step in an iteration of a loop inside those it is in.
    #[must_use]
    pub fn in_iteration(mut self, iteration: u64) -> Self {
        self.iterations.push(iteration);
        self
    }

    /// The same step at another attempt.
    #[must_use]
    pub fn at_attempt(mut self, attempt: u64) -> Self {
        self.attempt = attempt;
        self
    }

    /// The iteration of the innermost loop; 0 outside loops.
    pub fn iteration(&self) -> u64 {
        self.iterations.last().copied().unwrap_or(0)
    }

    /// The path and the iterations, as people read them: `fix.test[3][0]`.
    pub fn label(&self) -> String {
        let mut label = self.path.clone();
        for iteration in &self.iterations {
            // Writing to a text does not fail.
            write!(label, "[{iteration}]").ok();
        }
        label
    }

    /// Whether the path and the iteration of the innermost loop are all there is to say.
    pub fn is_flat(&self) -> bool {
        self.attempt == 1 && matches!(self.iterations.as_slice(), [] | [1..=u64::MAX])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_the_innermost_iteration() {
        let nested = Place::step("fix.test").in_iteration(3).in_iteration(0);
        assert_eq!((nested.iteration(), nested.is_flat()), (0, false));
        assert_eq!(nested.label(), "fix.test[3][0]");
        assert_eq!(Place::flat("fix", 2), Place::step("fix").in_iteration(2));
        assert_eq!(Place::flat("fix", 0), Place::step("fix"));
        assert!(Place::flat("fix", 2).is_flat());
        assert!(!Place::step("fix").at_attempt(2).is_flat());
    }
}
