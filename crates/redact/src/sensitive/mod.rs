//! Files whose whole content is secret (environments, keys, credentials, histories of shells), and the commands and
//! patches that show them.
//!
//! What a file is called is all that is looked at: no file is opened.

mod command;
mod patch;
mod path;

pub use command::{Exposes, exposed_by, looks_secret, named_in, written_by};
pub use patch::in_patch;
pub use path::{is_secret_throughout, is_sensitive};
