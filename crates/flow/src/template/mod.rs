//! Templates: texts of a workflow file with `{{…}}` in them.

use serde_json::Value;

/// The values that templates and expressions can name.
pub trait Variables {
    /// The value at a path such as `["states", "build", "Output"]`; `None` when it is not defined. The first part is
    /// one of `inputs`, `states`, `workflow`, `env`, `context`, `loop`, `error`, `awf`. A path of one part gives all
    /// of it as an object.
    fn value(&self, path: &[&str]) -> Option<Value>;
}
