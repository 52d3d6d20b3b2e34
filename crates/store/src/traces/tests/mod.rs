mod corpus;
mod damage;
mod foreign;
pub(crate) mod kit;
mod looking;
mod placing;
