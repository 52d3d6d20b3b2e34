mod corpus;
mod foreign;
pub(crate) mod kit;
mod looking;
mod placing;
