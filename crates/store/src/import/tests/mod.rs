mod badly;
mod copies;
mod growing;
mod kit;
