//! Words in a row, by themselves.
//!
//! Looking whether words follow each other takes most of the time of a search for common words, and most events that
//! have all of the words are not among those that are wanted. So the places of words are only looked at in events that
//! could be.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings as _, SegmentPostings};
use tantivy::query::Bm25Weight;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet as _, Score, Searcher, SegmentReader, TERMINATED, Term};

/// Two or more words, one directly behind the other.
#[derive(Debug)]
pub(super) struct Phrase {
    terms: Vec<Term>,
}

/// Where one of the words is.
struct Occurrences {
    postings: SegmentPostings,
    /// How many words of the phrase come behind it.
    behind: u32,
}

impl Phrase {
    /// A phrase, unless it is only one word.
    pub(super) fn new(terms: Vec<Term>) -> Option<Self> {
        (terms.len() > 1).then_some(Self { terms })
    }

    /// What says how well an event fits, from how often it says the phrase.
    pub(super) fn weight(&self, searcher: &Searcher) -> tantivy::Result<Bm25Weight> {
        Bm25Weight::for_terms(searcher, &self.terms)
    }

    /// How long the texts of a segment are.
    fn norms(&self, segment: &SegmentReader) -> tantivy::Result<FieldNormReader> {
        let norms = segment
            .fieldnorms_readers()
            .get_field(self.terms[0].field())?;
        Ok(norms.unwrap_or_else(|| FieldNormReader::constant(segment.max_doc(), 1)))
    }

    /// Gives the events of a segment that say the phrase, of those that are wanted, and how often they say it. An event
    /// is `wanted` or not for how often it could say it at most.
    pub(super) fn each(
        &self,
        segment: &SegmentReader,
        mut wanted: impl FnMut(DocId, u32) -> bool,
        mut take: impl FnMut(DocId, u32),
    ) -> tantivy::Result<()> {
        let Some(mut words) = self.occurrences(segment)? else {
            return Ok(());
        };
        let (rarest, others) = words.split_at_mut(1);
        let rarest = &mut rarest[0];
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut doc = rarest.postings.doc();
        'events: while doc != TERMINATED {
            let mut most = rarest.postings.term_freq();
            if !wanted(doc, most) {
                doc = rarest.postings.advance();
                continue;
            }
            for other in &mut *others {
                let mut at = other.postings.doc();
                if at < doc {
                    at = other.postings.seek(doc);
                }
                if at != doc {
                    doc = match at {
                        TERMINATED => TERMINATED,
                        at => rarest.postings.seek(at),
                    };
                    continue 'events;
                }
                most = most.min(other.postings.term_freq());
            }
            if wanted(doc, most) {
                rarest.ends(&mut left);
                for other in &mut *others {
                    if left.is_empty() {
                        break;
                    }
                    other.ends(&mut right);
                    intersect(&mut left, &right);
                }
                if !left.is_empty() {
                    take(doc, u32::try_from(left.len()).unwrap_or(u32::MAX));
                }
            }
            doc = rarest.postings.advance();
        }
        Ok(())
    }

    /// Where the words are, the rarest first. `None` when one of them is nowhere.
    fn occurrences(&self, segment: &SegmentReader) -> tantivy::Result<Option<Vec<Occurrences>>> {
        let index = segment.inverted_index(self.terms[0].field())?;
        let mut words = Vec::with_capacity(self.terms.len());
        for (behind, term) in (0..).zip(self.terms.iter().rev()) {
            let postings = index.read_postings(term, IndexRecordOption::WithFreqsAndPositions)?;
            let Some(postings) = postings else {
                return Ok(None);
            };
            words.push(Occurrences { postings, behind });
        }
        words.sort_by_key(|word| word.postings.doc_freq());
        Ok(Some(words))
    }

    /// Gives the events of a segment that fit better than a threshold, which `take` raises.
    pub(super) fn each_better(
        &self,
        segment: &SegmentReader,
        weight: &Bm25Weight,
        threshold: Score,
        take: &mut dyn FnMut(DocId, Score) -> Score,
    ) -> tantivy::Result<()> {
        let norms = self.norms(segment)?;
        let threshold = std::cell::Cell::new(threshold);
        let score = |doc, times| weight.score(norms.fieldnorm_id(doc), times);
        self.each(
            segment,
            |doc, most| score(doc, most) > threshold.get(),
            |doc, times| {
                let score = score(doc, times);
                if score > threshold.get() {
                    threshold.set(take(doc, score));
                }
            },
        )
    }
}

impl Occurrences {
    /// Where the phrase would end, for each place of the word in the event it is at.
    fn ends(&mut self, into: &mut Vec<u32>) {
        self.postings.positions_with_offset(self.behind, into);
    }
}

/// Keeps what is also in the other list. Both are in order.
fn intersect(list: &mut Vec<u32>, other: &[u32]) {
    let mut other = other.iter().copied().peekable();
    list.retain(|place| {
        while other.next_if(|it| it < place).is_some() {}
        other.peek() == Some(place)
    });
}
