//! The server of this crate passes the suite that every server has to, and keeps what it accepted whatever happens.

#[cfg(test)]
mod crash;
#[cfg(test)]
mod suite;
