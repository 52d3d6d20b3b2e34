//! `quipu up` and `quipu serve`, through the real binary and real sockets.

mod asked;
mod days;
mod hostile;
mod kit;
mod life;
mod page;
mod secrets;
mod service;
mod sockets;
mod users;
