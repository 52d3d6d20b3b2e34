//! What is kept of an event.

use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{
    TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager, WhitespaceTokenizer,
};

use crate::words;

/// Changes when a word becomes another word, so that older indexes are made anew: their schema is another. Since the
/// second, secrets are not among the words.
const WORDS: &str = "words-2";
const SPACED: &str = "spaced";

/// The fields of an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    /// What it says.
    pub(super) text: Field,
    /// The parts of words that it says, whatever their places.
    pub(super) part: Field,
    /// The files it names.
    pub(super) path: Field,
    /// What it is: see [`crate::Tag`].
    pub(super) tag: Field,
    /// The pass over a log in which it was read.
    pub(super) pass: Field,
    pub(super) seq: Field,
    /// Where it stands in the log.
    pub(super) place: Field,
    /// Milliseconds since 1970; the earliest time when it is not known.
    pub(super) at: Field,
}

/// The name of the time's field.
pub(super) const AT: &str = "at";
pub(super) const PASS: &str = "pass";
pub(super) const SEQ: &str = "seq";
pub(super) const PLACE: &str = "place";

pub(super) fn schema() -> (Schema, Fields) {
    let words = TextOptions::default().set_indexing_options(
        TextFieldIndexing::default()
            .set_tokenizer(WORDS)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions),
    );
    let tags = TextOptions::default().set_indexing_options(
        TextFieldIndexing::default()
            .set_tokenizer("raw")
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic),
    );
    let parts = TextOptions::default().set_indexing_options(
        TextFieldIndexing::default()
            .set_tokenizer(SPACED)
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic),
    );
    let number: NumericOptions = FAST.into();
    let mut schema = Schema::builder();
    let fields = Fields {
        text: schema.add_text_field("text", words.clone()),
        part: schema.add_text_field("part", parts),
        path: schema.add_text_field("path", words),
        tag: schema.add_text_field("tag", tags),
        pass: schema.add_u64_field(PASS, number.clone() | INDEXED),
        seq: schema.add_u64_field(SEQ, number.clone()),
        place: schema.add_u64_field(PLACE, number.clone()),
        at: schema.add_i64_field(AT, number),
    };
    (schema.build(), fields)
}

pub(super) fn tokenizers() -> TokenizerManager {
    let manager = TokenizerManager::default();
    manager.register(WORDS, TextAnalyzer::from(Words::default()));
    manager.register(SPACED, TextAnalyzer::from(WhitespaceTokenizer::default()));
    manager
}

/// [`words`], as the index takes them.
#[derive(Debug, Clone, Default)]
struct Words {
    token: Token,
}

struct Stream<'a> {
    text: &'a str,
    token: &'a mut Token,
    /// All words, where they are asked for one by one.
    words: Option<std::vec::IntoIter<Token>>,
}

impl Tokenizer for Words {
    type TokenStream<'a> = Stream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream<'a> {
        Stream {
            text,
            token: &mut self.token,
            words: None,
        }
    }
}

impl TokenStream for Stream<'_> {
    fn advance(&mut self) -> bool {
        let words = self.words.get_or_insert_with(|| {
            let mut words = Vec::new();
            words::whole(self.text, |word| {
                let mut token = Token::default();
                set(&mut token, &word);
                words.push(token);
            });
            words.into_iter()
        });
        let Some(token) = words.next() else {
            return false;
        };
        *self.token = token;
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }

    fn process(&mut self, sink: &mut dyn FnMut(&Token)) {
        let token = &mut *self.token;
        words::whole(self.text, |word| {
            set(token, &word);
            sink(token);
        });
    }
}

fn set(token: &mut Token, word: &words::Word<'_>) {
    token.text.clear();
    token.text.push_str(word.text);
    token.offset_from = word.range.start;
    token.offset_to = word.range.end;
    token.position = word.position as usize;
    token.position_length = 1;
}
