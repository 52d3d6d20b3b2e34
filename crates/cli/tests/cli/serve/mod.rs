//! `quipu up` and `quipu serve`, through the real binary and real sockets.

mod days;
mod hostile;
mod kit;
mod life;
mod secrets;
mod service;
mod sockets;
mod users;
