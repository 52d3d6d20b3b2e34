//! Session files of Claude Code, for its resume to open.
