//! Sessions as the Hugging Face Hub shows them.
