//! Plain text, for people.
