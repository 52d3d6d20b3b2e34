//! How a session becomes a file of some format.
//!
//! One writer per format, all with the same seam: whoever has a session gives what is known of it as a
//! whole ([`Header`](quipu_model::Header)), then its events in order, and gets back what the format could not carry. A writer
//! holds no more than it needs to write the next part, unless its format asks for the end at the beginning.

use std::io;

use quipu_model::{Attachment, Event};

use crate::loss::Loss;
use crate::normalized::Beyond;

/// Writes the events of one session in some format.
pub trait Projection {
    /// Takes the bytes of an attachment that the next event refers to. By default they are not wanted.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to.
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// Takes the next event.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to.
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// Whether it has a place for what a normalized transcript says of an event that the model has no place for. Then
    /// [`Projection::event_and_more`] is called for events that have such.
    fn takes_more(&self) -> bool {
        false
    }

    /// Takes the next event, and what a normalized transcript says of it that the model has no place for.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to.
    fn event_and_more(&mut self, event: &Event, _more: &Beyond) -> io::Result<()> {
        self.event(event)
    }

    /// Writes what is left, and says what the format does not have.
    ///
    /// # Errors
    ///
    /// Those of whatever is written to.
    fn finish(self: Box<Self>) -> io::Result<Loss>;
}

/// Where files go that lie beside the one that is written, such as pictures.
pub trait Beside {
    /// Writes a whole file, by its name relative to the one that is written (`images/ab.png`). `false` when
    /// there is no place for it: then what refers to it has to be counted as lost.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being written.
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<bool>;

    /// Keeps bytes under their hash, where the readers of traces look for them. `false` when there is no such
    /// place.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being written.
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) -> io::Result<bool> {
        Ok(false)
    }
}

/// There is no place beside what is written, as with a pipe.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl Beside for Nowhere {
    fn put(&mut self, _name: &str, _bytes: &[u8]) -> io::Result<bool> {
        Ok(false)
    }
}
