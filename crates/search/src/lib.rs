//! Full text over events.
//!
//! Someone remembers a word of what an agent said, or the name of a file it wrote, and wants to see the
//! place. This crate has what that takes, and knows nothing of logs or stores: what a word is, what a query
//! means, and an index in which events are looked up.
//!
//! | module | what it owns |
//! |---|---|
//! | [`words`] | what a word is: the same for what is kept, asked for and marked |
//! | [`query`] | the language of queries, read into a tree |
//! | [`when`] | times, as people write them |
//! | [`index`] | events by what they say, in files |
//! | [`snippet`] | where a text says what was looked for |
//! | [`document`] | an event, as it is handed to the index |
//!
//! # An example
//!
//! ```
//! use quipu_search::index::{Index as _, Passes, Sessions, TantivyIndex, Wish};
//! use quipu_search::query::{Clock, Filter, Query};
//! use quipu_search::snippet::{Marker, snippet};
//! use quipu_search::{Document, index};
//!
//! // What belongs to sessions, the index asks for; here there are none.
//! struct Nothing;
//! impl Sessions for Nothing {
//!     fn passes(&self, _: &Filter) -> index::Result<Passes> {
//!         Ok(Passes::default())
//!     }
//! }
//!
//! # let directory = tempfile::tempdir()?;
//! let index = TantivyIndex::open_or_create(directory.path())?;
//! let mut part = index.parts(index::PART).begin()?;
//! let text = "The test fails because parseHeader() returns None";
//! part.add(Document { pass: 1, seq: 7, text: text.to_owned(), ..Document::default() })?;
//! let mut writer = index.writer()?;
//! writer.add(part.write()?)?;
//! writer.commit("")?;
//!
//! let clock = Clock { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
//! let query = Query::parse(r#"header "returns none""#, &clock)?;
//! let found = index.view()?.search(&query, &Wish { limit: 10, ..Wish::default() }, &Nothing)?;
//! assert_eq!(found[0].seq, 7);
//!
//! let marks = Marker::new(&query).marks(text);
//! assert_eq!(&text[marks[0].range.clone()], "Header");
//! let shown = snippet(text, &marks, 30);
//! assert_eq!(&text[shown.range], "parseHeader() returns None");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//!
//! * **A view does not change.** Whoever looks something up sees the index as it was committed last,
//!   while others write.
//! * **What is not committed is not there**, also after the process or the machine died.
//! * **Hostile queries are bounded**: in length, in nesting, in the number of terms.

pub mod document;
pub mod index;
pub mod query;
pub mod snippet;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod when;
pub mod words;

pub use document::{Document, Facet, Tag};
