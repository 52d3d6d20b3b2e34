//! What is asked of an index, whatever engine it has.
//!
//! `testkit` tries any implementation.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{Hit, Passes, Result, Sessions, Wish};
use crate::Document;
use crate::query::Query;

/// An index. Every method may be called from any thread at any time.
pub trait Index: fmt::Debug + Send + Sync {
    /// What the last commit was marked with.
    ///
    /// # Errors
    ///
    /// When the index cannot be read.
    fn mark(&self) -> Result<Option<String>>;

    /// What is wrong with the index. With `all`, all of it is read and compared with what was written.
    fn damages(&self, all: bool) -> Vec<String>;

    /// The index as it is now. What is committed later is in a later view.
    ///
    /// # Errors
    ///
    /// When the index cannot be read.
    fn view(&self) -> Result<Arc<dyn View>>;

    /// Begins to write.
    ///
    /// # Errors
    ///
    /// When somebody else writes, or the index cannot be written.
    fn writer(&self) -> Result<Box<dyn Writer>>;

    /// What parts are begun with. `budget` is how many bytes of memory each may take.
    fn parts(&self, budget: usize) -> Box<dyn Parts>;
}

/// The index as it was at one moment.
pub trait View: fmt::Debug + Send + Sync {
    /// How many events there are.
    fn events(&self) -> u64;

    /// How many events were removed that still take room.
    fn removed(&self) -> u64;

    /// The highest number of a pass.
    ///
    /// # Errors
    ///
    /// When the index cannot be read.
    fn highest_pass(&self) -> Result<u64>;

    /// The events that a query asks for.
    ///
    /// # Errors
    ///
    /// When the index cannot be read, or sessions cannot be asked.
    fn search(&self, query: &Query, wish: &Wish, sessions: &dyn Sessions) -> Result<Vec<Hit>>;

    /// How many events a query asks for.
    ///
    /// # Errors
    ///
    /// When the index cannot be read, or sessions cannot be asked.
    fn count(&self, query: &Query, hidden: &Passes, sessions: &dyn Sessions) -> Result<u64>;
}

/// Begins parts; shared by threads.
pub trait Parts: fmt::Debug + Send + Sync {
    /// Begins a part.
    ///
    /// # Errors
    ///
    /// When nothing can be written.
    fn begin(&self) -> Result<Box<dyn Part>>;
}

/// A part of the index that one thread fills.
pub trait Part: fmt::Debug + Send {
    /// Takes in an event.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    fn add(&mut self, document: Document) -> Result<()>;

    /// Whether it should be written before more is taken in.
    fn is_full(&self) -> bool;

    /// Writes it. Nobody sees it before it is added and committed.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    fn write(self: Box<Self>) -> Result<Written>;
}

/// Adds to an index. There is one at a time.
pub trait Writer: fmt::Debug + Send {
    /// Adds a part.
    ///
    /// # Errors
    ///
    /// When it is not a part of this index, or cannot be added.
    fn add(&mut self, part: Written) -> Result<()>;

    /// Takes out what a pass has put in.
    fn remove(&mut self, pass: u64);

    /// Makes all of it visible, and lasting. `mark` is what [`Index::mark`] gives from then on.
    ///
    /// # Errors
    ///
    /// When it cannot be written. Then nothing of it is visible.
    fn commit(&mut self, mark: &str) -> Result<()>;

    /// Leaves parts as they are from now on.
    fn keep_apart(&mut self);

    /// Writes parts again of which something was removed, so that nothing of it is left. Parts had better be kept apart
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    fn purge(&mut self) -> Result<()>;

    /// Waits until parts are put together that are to be.
    ///
    /// # Errors
    ///
    /// When they cannot be.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A part that is written, and can be added to the index that it is of.
pub struct Written(Box<dyn Any + Send>);

impl Written {
    /// What an implementation knows a part by.
    pub fn new(part: impl Any + Send) -> Self {
        Self(Box::new(part))
    }

    /// What the part is known by, to the implementation that wrote it.
    pub fn take<T: Any>(self) -> Option<T> {
        self.0.downcast().ok().map(|part| *part)
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written").finish_non_exhaustive()
    }
}
