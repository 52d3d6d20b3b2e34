//! What programs ask of a store as a whole: what there is, what an argument means, whether it is sound.
//!
//! | method of [`Store`](crate::Store) | where |
//! |---|---|
//! | `list`, `find`, `count`, `census`, `agents`, `short_ids`, `children`, `stats`, `figures`, `waste`, `balances` | `list` |
//! | `expiring` | `expiry` |
//! | `resolve` | `resolve` |
//! | `doctor` | `doctor` |
//! | `open`, `import`, `import_paths`, `rebuild`, `changes` | `import` |
//! | `prune` | `import/forget` |
//! | `read`, `events` (which can be followed), `page` | `transcript` |
//! | `search`, `count_matches` | `search` |
//! | `explain` | `stats/explain` |
//! | `timeline`, `context`, `tools`, `tools_over`, `blocks` | [`analysis`](crate::analysis) |
//! | `annotations` | [`annotations`](crate::annotations) |
//! | `export` | `source` |

mod doctor;
mod expiry;
mod list;
mod project;
mod resolve;

pub use doctor::{Diagnosis, Examine};
pub use expiry::{Expiring, Expiry, LogState, unpacked};
pub use list::{Census, ListError, Listing, ShortIds};
pub use project::{NotADirectory, Project};
pub use resolve::{Resolved, Unresolved, identify, is_database, resolve};
