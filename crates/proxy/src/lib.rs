//! What passes between an agent and its servers: byte for byte to the other side, and a copy for the record.

pub mod mcp;
