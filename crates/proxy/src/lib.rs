//! What passes between an agent and its servers.
