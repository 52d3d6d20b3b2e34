//! Why there is no price.

/// Why a call has no price. None of these means that it cost nothing, but one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unpriced {
    /// The log does not name the model.
    #[error("no model is named")]
    NoModel,
    /// A message that an agent made up, without a call to any model. It has no price since there was nothing to
    /// pay for.
    #[error("no model was called: the agent wrote this itself")]
    Synthetic,
    /// No rule finds the model: it is too new, has another name, or runs on someone's own machine.
    #[error("no price is known for {model:?}")]
    Unknown {
        /// The name, as it was asked for.
        model: String,
    },
    /// Only others than its maker sell a model of this name, each at a price of their own. The name does not say
    /// whose it was, and many such models also run at home.
    #[error("{model:?} does not say who sold it: {}", providers.join(", "))]
    Unsaid {
        /// The name, as it was asked for.
        model: String,
        /// Who sells it. `provider/name` is one that is priced.
        providers: Vec<&'static str>,
    },
}
