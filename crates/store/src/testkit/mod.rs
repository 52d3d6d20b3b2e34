//! Suites that every implementation of the store's inner traits has to pass, and implementations in memory.
//!
//! A suite knows an implementation by its trait alone. It is given one that nothing is kept in, and says what was done
//! as it should be and what was not.
//!
//! ```
//! use quipu_store::testkit::{MemoryObjects, objects};
//!
//! let report = objects::conformance(&MemoryObjects::default());
//! assert_eq!(report.failed, []);
//! ```

pub mod bus;
pub mod catalogue;
pub mod events;
mod memory;
pub mod objects;

#[cfg(test)]
mod tests;

pub use memory::{MemoryBus, MemoryEvents, MemoryObjects};

/// What an implementation did otherwise than it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What was tried.
    pub check: &'static str,
    /// What happened.
    pub why: String,
}

/// What became of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Those that went as they should.
    pub passed: Vec<&'static str>,
    /// Those that did not.
    pub failed: Vec<Failure>,
}

/// What a check says: nothing, or what was otherwise.
type Outcome = Result<(), String>;

/// A check of a suite, and its name.
type Check<S> = (&'static str, fn(&S) -> Outcome);

/// Runs the checks of a suite, one after the other.
fn run<S: ?Sized>(checks: &[Check<S>], subject: &S) -> Report {
    let mut report = Report::default();
    for (check, run) in checks {
        match run(subject) {
            Ok(()) => report.passed.push(check),
            Err(why) => report.failed.push(Failure { check, why }),
        }
    }
    report
}

/// Something went wrong that should have gone well.
fn failed(error: impl std::fmt::Display) -> String {
    format!("it failed: {error}")
}

/// Says what was expected, unless it is there.
#[expect(
    clippy::needless_pass_by_value,
    reason = "checks compare what they have just been given"
)]
fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: {expected:?} was expected, not {found:?}"))
}
