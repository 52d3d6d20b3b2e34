//! Handing a transcript to a server.
