//! Submission keys.

use crate::Time;
use crate::describe::document;

document! {
    /// A submission key.
    pub struct Key {
        /// Its id.
        pub key_id: String,
        /// The name under which it submits.
        pub pseudonym: String,
        /// What it is for.
        pub label: String,
        /// What it may do: `submit`, `read`, `admin`.
        pub scopes: Vec<String>,
        /// When it was made.
        pub created_at: Time,
        /// When it was revoked; null while it holds.
        pub revoked_at: Option<Time>,
        /// When it stops being accepted; null for a key that does not expire.
        pub expires_at: Option<Time>,
    }
}

document! {
    /// A submission key that was just made.
    pub struct NewKey {
        /// What is kept of it.
        #[serde(flatten)]
        pub entry: Key,
        /// The key itself. It is shown only once.
        pub key: String,
    }
}
