mod badly;
mod copies;
mod growing;
pub(crate) mod kit;
mod lost;
