//! What programs ask of a store as a whole: what there is, what an argument means, whether it is sound.
//!
//! | method of [`Store`](crate::Store) | where |
//! |---|---|
//! | `list`, `count`, `census`, `agents`, `short_ids` | `list` |
//! | `resolve` | `resolve` |
//! | `doctor` | `doctor` |
//! | `open`, `import`, `import_paths`, `rebuild`, `changes` | `import` |
//! | `forget` (what `prune` does) | `import/forget` |
//! | `read`, `events`, `page` | `transcript` |
//! | `search`, `count_matches` | `search` |
//! | `stats`, `waste`, `explain` | `stats` |
//! | `export` | `source` |

mod doctor;
mod list;
mod project;
mod resolve;

pub use doctor::{Diagnosis, Examine};
pub use list::{Census, Listing, ShortIds};
pub use project::{NotADirectory, Project};
pub use resolve::{Meant, Unresolved, identify, is_database, resolve};
