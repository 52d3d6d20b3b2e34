//! Session files of Codex, for its resume to open.
