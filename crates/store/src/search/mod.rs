//! Looking for what was said.
//!
//! | module | what it owns |
//! |---|---|
//! | `document` | what an event says, as far as it can be looked for |
//! | `indexing` | putting it into the index, while logs are read |
//! | `sessions` | what the catalogue knows of sessions, for queries that ask for it |
//! | `lookup` | from a query to events that can be shown |
//! | `opened` | the index, opened once |
//! | `regex` | patterns, looked for in the archive itself |
//! | `window` | reading some events of a transcript |

pub mod document;
pub(crate) mod indexing;
mod lookup;
mod opened;
mod regex;
mod sessions;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use document::named_files;
pub use indexing::index_path;
pub use lookup::{Answer, Ask, Found, SearchError, Show, Sort};
pub(crate) use opened::Opened;
pub use regex::{Matches, Pattern};
pub use sessions::Known;
pub use window::Spoken;
