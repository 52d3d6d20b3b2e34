//! Expressions: the conditions of a workflow file.
