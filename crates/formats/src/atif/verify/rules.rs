//! The rules.

use quipu_exchange::rules;

rules! {
    /// It is not one JSON document, or one that is too deep or too long to look into.
    Syntax = "syntax", Error;
    /// A key that has to be there is not.
    MissingKey = "missing-key", Error;
    /// A key that the format does not have: its readers refuse the document.
    UnknownKey = "unknown-key", Error;
    /// A key that is there twice.
    DuplicateKey = "duplicate-key", Warning;
    /// A value of another type.
    WrongType = "wrong-type", Error;
    /// A version that is not known.
    Version = "version", Warning;
    /// Something that came with a later version than the document is of.
    TooNew = "too-new", Warning;
    /// There are no steps.
    NoSteps = "no-steps", Error;
    /// Steps are not numbered 1, 2, 3.
    StepOrder = "step-order", Error;
    /// A step is by nobody known.
    Source = "source", Error;
    /// A field for steps of an agent in another's.
    AgentOnly = "agent-only", Error;
    /// No call to a model, and yet tokens or reasoning.
    NoModelCall = "no-model-call", Error;
    /// A time that does not read.
    Time = "time", Error;
    /// An observation answers a call that is not in its step.
    Observation = "observation", Error;
    /// Two calls of a step have the same id.
    DuplicateCall = "duplicate-call", Warning;
    /// A part of a kind that is not known.
    Part = "part", Error;
    /// A media type that is not the format's.
    MediaType = "media-type", Error;
    /// Content in place of the path of a file.
    Inline = "inline", Error;
    /// A reference to a trajectory that is not there.
    Reference = "reference", Error;
    /// Two trajectories of sub-agents have the same id.
    DuplicateTrajectory = "duplicate-trajectory", Error;
    /// More tokens from a cache than the prompt has.
    Cached = "cached", Warning;
    /// Totals that are not those of the steps. They may be right: sub-agents may be counted in.
    Totals = "totals", Note;
}
