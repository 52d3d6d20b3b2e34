mod badly;
mod checkpoints;
mod copies;
mod growing;
pub(crate) mod kit;
mod lost;
mod places;
mod received;
