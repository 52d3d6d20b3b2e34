//! What is asked of a catalogue, whatever database it is in.
//!
//! Each trait is one reason to ask; [`Catalogue`] is all of them. `testkit::catalogue` tries any implementation.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use quipu_agents::Summary;

use super::{
    ActivityRow, Advance, CatalogueError, Copied, DriftRow, Filter, Lineage, NotFound, Order,
    Reading, Result, Roots, Slots, SourceRow, Span, SpendRow, SubjectRow, Sum, TranscriptRow,
    WasteRow,
};

/// A catalogue. Every method may be called from any thread at any time; what one of them does at once, no other comes
/// between.
pub trait Catalogue:
    Transcripts
    + Sources
    + Lineages
    + IndexedPasses
    + Spending
    + Advances
    + Upkeep
    + fmt::Debug
    + Send
    + Sync
{
}

impl<C> Catalogue for C where
    C: Transcripts
        + Sources
        + Lineages
        + IndexedPasses
        + Spending
        + Advances
        + Upkeep
        + fmt::Debug
        + Send
        + Sync
{
}

impl dyn Catalogue + '_ {
    /// Does several things as one: all of them, or none when the process dies in between or one of them fails.
    ///
    /// # Errors
    ///
    /// When one of them fails, or the catalogue does.
    pub fn at_once<T, E: From<CatalogueError>>(
        &self,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let (mut act, mut done) = (Some(act), None);
        self.transaction(&mut || {
            done = act.take().map(|act| act());
            matches!(done, Some(Ok(_)))
        })?;
        done.unwrap_or_else(|| unreachable!("a transaction acts, or fails"))
    }
}

/// What transcripts there are.
pub trait Transcripts {
    /// The transcripts that are meant, in order, at most `limit`.
    fn list(
        &self,
        filter: &Filter,
        order: Order,
        limit: Option<usize>,
    ) -> Result<Vec<TranscriptRow>>;

    /// Sums by agent over the transcripts that are meant.
    fn by_agent(&self, filter: &Filter) -> Result<Vec<Sum>>;

    /// The transcript that an id means. That is an address; or a name for one: the id of a session, which means the best of
    /// its copies, the id of a copy, the beginning of any of these, or `last`.
    fn find(&self, id: &str) -> Result<TranscriptRow, NotFound>;

    /// One transcript, by its number.
    fn row(&self, id: i64) -> Result<TranscriptRow>;

    /// The ids of all transcripts, sorted.
    fn run_ids(&self) -> Result<Vec<String>>;

    /// The transcripts that were read from one file.
    fn transcripts_at(&self, path: &Path) -> Result<Vec<TranscriptRow>>;

    /// How many sub-agents each session has that has any, by the id that copies share.
    fn child_counts(&self) -> Result<BTreeMap<String, u64>>;

    /// The sub-agents of a session, in the order in which they began.
    fn children(&self, native: &str) -> Result<Vec<TranscriptRow>>;

    /// The sub-agents of these sessions and the sub-agents of those, each by the id that copies of its session share, with its
    /// number.
    fn below(&self, natives: &[&str]) -> Result<Vec<(String, i64)>>;

    /// What adapters do not know: agent, version, name, how often, in how many logs, and where first.
    fn drift(&self) -> Result<Vec<DriftRow>>;

    /// Counts of records by what became of them, over all logs: `(what, records)`.
    fn dropped(&self) -> Result<Vec<(String, u64)>>;
}

/// What is known of logs, and where reading of them stopped.
pub trait Sources {
    /// Every log that was read, without its checkpoint.
    fn sources(&self) -> Result<Vec<SourceRow>>;

    /// What was read of one file.
    fn sources_at(&self, path: &Path) -> Result<Vec<SourceRow>>;

    /// Everything that is kept where it is: recorded runs and traces.
    fn in_place(&self) -> Result<Vec<SourceRow>>;

    /// What is known of a log, by the name of its manifest.
    fn source(&self, key: &str) -> Result<Option<SourceRow>>;

    /// How many logs an earlier version read. What it put down may hold more than it would now.
    fn outdated(&self) -> Result<u64>;

    /// Leaves nothing in the file of what was known before.
    fn compact(&self) -> Result<()>;

    /// Whether anything is known of a log.
    fn knows(&self, key: &str) -> Result<bool>;

    /// Stops relying on what is known of a log: if it still exists, it is read again, and what is kept
    /// of it is checked.
    fn distrust(&self, key: &str) -> Result<()>;

    /// Where reading of a log stopped: the version in the archive, and the checkpoint with the summary.
    fn checkpoint(&self, key: &str) -> Result<Option<(u32, Vec<u8>)>>;

    /// Puts down what was found out by reading a log, in place of what was known of it. Gives the number
    /// of the transcript, if there is one.
    fn put(&self, reading: &Reading) -> Result<Option<i64>>;

    /// Forgets that a file that holds many sessions was looked at as a whole.
    fn forget_whole(&self, path: &Path) -> Result<()>;

    /// Forgets sources that are not among these.
    fn keep_only(&self, keys: &HashSet<String>) -> Result<()>;

    /// The blobs that transcripts refer to.
    fn blobs(&self) -> Result<Vec<String>>;

    /// Whether any transcript refers to a blob.
    fn uses_blob(&self, blob: &str) -> Result<bool>;

    /// Forgets a source and what was read from it. The archive is not touched.
    fn forget(&self, key: &str) -> Result<()>;
}

/// Which transcripts have something in common.
pub trait Lineages {
    /// The transcript of a log, and those that were compared with it: the transcripts that have to be settled
    /// again when it changes.
    fn compared_with(&self, key: &str) -> Result<Vec<i64>>;

    /// Of these transcripts and those related to them, the ones that are related to any. Asked of all at
    /// once, since most have no relatives.
    fn related(&self, ids: &[i64]) -> Result<Vec<i64>>;

    /// The transcripts that may share records with this one: of the same session, forked from it or it
    /// from them, or beginning with the same record; and sub-agents of which it tells itself, or that of which it is
    /// one.
    fn relatives(&self, id: i64) -> Result<Vec<i64>>;

    /// What decides whether a transcript is the original of what it shares with others.
    fn lineage(&self, id: i64) -> Result<Lineage>;

    /// Puts down how much of a transcript is a copy; `own` is what is not.
    fn put_copied(&self, id: i64, copied: &Copied, own: Option<&Summary>) -> Result<()>;

    /// Gives the plain id of each session that is there several times to the copy that has most of it.
    fn settle_run_ids(&self) -> Result<()>;
}

/// Which readings of logs are in the search index.
pub trait IndexedPasses {
    /// Puts down that these are in the index. Gives those of which nothing is known yet.
    fn put_live(&self, passes: &[u64]) -> Result<Vec<u64>>;

    /// Passes that are to be taken out of the index.
    fn dead_passes(&self) -> Result<Vec<u64>>;

    /// Puts down that these are to be taken out of the index.
    fn put_dead(&self, passes: &[u64]) -> Result<()>;

    /// Notes that these were taken out of the index.
    fn bury(&self, passes: &[u64]) -> Result<()>;

    /// Nothing is in the index any more.
    fn forget_passes(&self) -> Result<()>;

    /// Logs whose transcripts are not wholly in the index, or are there in so many pieces that they had better be
    /// put in anew.
    fn not_indexed(&self) -> Result<Vec<String>>;

    /// The logs that have a transcript and are in the archive, by the names of their manifests.
    fn kept_keys(&self) -> Result<Vec<String>>;

    /// How many transcripts are not wholly in the index.
    fn count_not_indexed(&self) -> Result<u64>;

    /// The passes that count.
    fn live_passes(&self) -> Result<Vec<u64>>;

    /// The passes that count, with their transcripts.
    fn passes_of_transcripts(&self) -> Result<Vec<(u64, i64)>>;

    /// Whether a number was given to a pass that is still known.
    fn knows_pass(&self, pass: u64) -> Result<bool>;

    /// The transcript that a pass belongs to, if the pass counts.
    fn transcript_of_pass(&self, pass: u64) -> Result<Option<i64>>;

    /// Below this number, everything that is in the index is accounted for.
    fn settled_pass(&self) -> Result<u64>;

    /// The number that the next pass gets.
    fn next_pass(&self) -> Result<u64>;

    /// Sets [`Self::settled_pass`].
    fn put_next_pass(&self, next: u64) -> Result<()>;

    /// Something that is known of the catalogue as a whole.
    fn meta(&self, name: &str) -> Result<Option<String>>;

    /// Puts down something of the catalogue as a whole.
    fn put_meta(&self, name: &str, value: &str) -> Result<()>;
}

/// What was spent and done, by the quarter of an hour.
pub trait Spending {
    /// Gives what was spent, row by row: in these quarters of an hour, by models whose names have this in them.
    fn each_spend(
        &self,
        slots: &Slots,
        model: Option<&str>,
        take: &mut dyn FnMut(&SpendRow<'_>),
    ) -> Result<()>;

    /// Gives what was done, row by row.
    fn each_activity(&self, slots: &Slots, take: &mut dyn FnMut(&ActivityRow<'_>)) -> Result<()>;

    /// Gives what was done with each tool, row by row.
    fn each_tool_use(&self, slots: &Slots, take: &mut dyn FnMut(&ActivityRow<'_>)) -> Result<()>;

    /// Gives what need not have been paid for, row by row.
    fn each_waste(&self, slots: &Slots, take: &mut dyn FnMut(&WasteRow<'_>)) -> Result<()>;

    /// What is known of transcripts whose figures are asked for.
    fn subjects(&self, filter: &Filter) -> Result<Vec<SubjectRow>>;

    /// What each session is a sub-agent of.
    fn roots(&self) -> Result<Roots>;

    /// The directories that sessions ran in, sorted.
    fn directories(&self) -> Result<Vec<String>>;
}

/// What was added to transcripts, in the order in which it became known. Each event has a place, counted over all
/// transcripts, and so has each transcript that is gone.
pub trait Advances {
    /// Puts down that a log has so many events now. The first `holds` of those that were told of before are what they
    /// were; what is behind them is told again.
    fn put_advance(&self, key: &str, events: u64, holds: u64) -> Result<()>;

    /// What became known behind a place, in order, at most so many rows. The first is cut so that it begins right behind the
    /// place.
    fn advances(&self, behind: u64, most: usize) -> Result<Vec<Advance>>;

    /// Which places are known.
    fn advances_span(&self) -> Result<Span>;
}

/// The catalogue as a whole: what is done at once, and whether it is sound.
pub trait Upkeep {
    /// Acts, and keeps what was done if it says so; else none of it is done. Whoever holds a transaction may begin no
    /// other.
    fn transaction(&self, act: &mut dyn FnMut() -> bool) -> Result<()>;

    /// The same catalogue, for a thread that must not wait for what others do at once.
    fn another(&self) -> Result<Arc<dyn Catalogue>>;

    /// The version of its tables.
    fn version(&self) -> Result<i64>;

    /// Where it is, for people.
    fn path(&self) -> &Path;

    /// Makes the sums that are missing.
    fn seal(&self) -> Result<()>;

    /// What is wrong with the catalogue's file and with what is in it. With `all`, indices are compared with their
    /// tables as well.
    fn damages(&self, all: bool) -> Vec<String>;
}
