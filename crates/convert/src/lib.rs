//! From any log to any format.
