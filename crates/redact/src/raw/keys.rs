//! What the keys of objects tell of their values, whatever agent wrote them.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

/// A set of things that a key tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Class(u32);

impl Class {
    /// Nothing.
    pub(super) const NONE: Self = Self(0);
    /// The value names a file.
    pub(super) const PATH: Self = Self(1);
    /// What is in the file that is named beside it.
    pub(super) const CONTENT: Self = Self(1 << 1);
    /// What came of a call.
    pub(super) const RESULT: Self = Self(1 << 2);
    /// What a call is made with.
    pub(super) const INPUT: Self = Self(1 << 3);
    /// Something that what came of a call may stand in.
    pub(super) const WRAP: Self = Self(1 << 4);
    /// The id of a call.
    pub(super) const CALL: Self = Self(1 << 5);
    /// The id of anything.
    pub(super) const ID: Self = Self(1 << 6);
    /// The name of the value beside it.
    pub(super) const NAME: Self = Self(1 << 7);
    /// The value of the name beside it.
    pub(super) const VALUE: Self = Self(1 << 8);
    /// A command line.
    pub(super) const COMMAND: Self = Self(1 << 9);
    /// A word of the format rather than of what it holds.
    pub(super) const FORM: Self = Self(1 << 10);
    /// What kind of data is beside it.
    pub(super) const MEDIA: Self = Self(1 << 11);
    /// Data whose kind stands beside it.
    pub(super) const DATA: Self = Self(1 << 12);
    /// What only a machine can read.
    pub(super) const SEALED: Self = Self(1 << 13);
    /// A piece of something that is streamed is in it.
    pub(super) const DELTA: Self = Self(1 << 14);
    /// A text that may go on in the next block or record.
    pub(super) const TEXT: Self = Self(1 << 15);
    /// Tells which stream a piece is of.
    pub(super) const LANE: Self = Self(1 << 16);
    /// What came of a call, told once more outside of it.
    pub(super) const AGAIN: Self = Self(1 << 17);
    /// Says what an object is.
    pub(super) const TYPE: Self = Self(1 << 18);
    /// The value of what the object itself is called.
    pub(super) const INNER: Self = Self(1 << 19);
    /// How many, or how long.
    pub(super) const COUNT: Self = Self(1 << 20);
    /// Tells a record from others, by a time or by a number that a machine made up.
    pub(super) const UNIQUE: Self = Self(1 << 21);

    /// Whether it tells any of these.
    #[inline]
    pub(super) const fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// Both.
    #[inline]
    pub(super) const fn and(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// The keys that tell this.
    #[cfg(test)]
    pub(super) fn keys(self) -> impl Iterator<Item = &'static str> {
        TABLE
            .iter()
            .filter(move |(class, _)| class.any(self))
            .flat_map(|(_, keys)| keys.iter().copied())
    }

    /// What a key tells.
    pub(super) fn of(key: &[u8]) -> Self {
        if key.len() > LONGEST {
            return Self::NONE;
        }
        CLASSES.get(key).copied().unwrap_or_default()
    }
}

static CLASSES: LazyLock<FxHashMap<&[u8], Class>> = LazyLock::new(|| {
    let mut classes: FxHashMap<&[u8], Class> = FxHashMap::default();
    for (class, keys) in TABLE {
        for key in *keys {
            let all = classes.entry(key.as_bytes()).or_default();
            *all = all.and(*class);
        }
    }
    classes
});

/// The keys that agents, providers and protocols use.
#[rustfmt::skip]
const TABLE: &[(Class, &[&str])] = &[
    (Class::PATH, &[
        "file_path", "filePath", "filepath", "path", "filename", "fileName", "file_name", "file", "target_file",
        "targetFile", "absolute_path", "absolutePath", "abs_path", "relative_path", "relativePath", "uri", "notebook_path",
        "relative_workspace_path", "relativeWorkspacePath", "old_path", "new_path", "oldPath", "newPath", "displayPath",
        "TargetFile", "AbsolutePath",
    ]),
    (Class::CONTENT, &[
        "content", "contents", "text", "new_string", "old_string", "newString", "oldString", "output", "stdout", "data",
        "edits", "patch", "diff", "originalFile", "original_file", "structuredPatch", "structured_patch", "file_text",
        "fileText", "code_edit", "old_str", "new_str", "insert_text", "newText", "oldText", "new_text", "old_text",
        "before", "after", "body", "snippet", "lines", "unified_diff", "unifiedDiff", "originalContent", "newContent",
        "original_content", "new_content", "fileDiff", "blob", "value", "result", "preview", "replacement", "changes",
        "oldContent", "llmContent", "returnDisplay", "resultDisplay", "raw", "numbered", "CodeContent",
    ]),
    (Class::RESULT, &[
        "content", "output", "result", "results", "stdout", "stderr", "aggregated_output", "aggregatedOutput",
        "formatted_output", "formattedOutput", "toolResult", "tool_result", "tool_response", "toolResponse", "response",
        "rawOutput", "raw_output", "resultDisplay", "returnDisplay", "llmContent", "metadata", "data", "text",
        "tool_output", "toolOutput", "details", "display", "diff", "returned", "value", "observation", "contents",
    ]),
    (Class::INPUT, &[
        "input", "arguments", "args", "parameters", "params", "function", "rawInput", "raw_input", "toolInput",
        "tool_input", "command", "cmd", "action", "kwargs", "toolArgs", "tool_args", "parsed_cmd", "locations",
        "invocation", "toolCall", "tool_call", "functionCall", "input_data", "arguments_json", "partial_json",
    ]),
    (Class::WRAP, &["state", "update", "item", "payload", "tool", "functionResponse", "function_response", "part"]),
    (Class::CALL, &[
        "tool_use_id", "toolUseId", "toolUseID", "tool_call_id", "toolCallId", "toolCallID", "call_id", "callId", "callID",
        "function_call_id", "functionCallId", "sourceToolUseID",
    ]),
    (Class::ID, &["id"]),
    (Class::NAME, &["name", "key", "header", "variable", "field", "env", "Name", "Key", "label"]),
    (Class::VALUE, &["value", "val", "Value", "secret", "default"]),
    (Class::INNER, &[
        "value", "Value", "val", "stringValue", "string_value", "data", "plaintext", "plainText", "plain_text", "S",
    ]),
    (Class::COMMAND, &[
        "command", "cmd", "script", "shell_command", "shellCommand", "commandLine", "command_line", "CommandLine", "bash",
        "input", "code",
    ]),
    (Class::FORM, &[
        "type", "kind", "status", "role", "id", "name", "uuid", "parentUuid", "timestamp", "mimeType", "mime_type",
        "media_type", "mediaType", "tool_use_id", "toolUseId", "tool_call_id", "toolCallId", "call_id", "callId", "callID",
        "language", "lang", "encoding", "object", "format", "version", "stop_reason", "file_path", "filePath", "path",
        "filename", "fileName", "cwd", "title", "description", "tool_name", "toolName", "exit_code", "duration",
    ]),
    (Class::MEDIA, &["media_type", "mediaType", "mimeType", "mime_type", "contentType", "content_type"]),
    (Class::DATA, &["data", "blob", "bytes", "base64", "url"]),
    (Class::SEALED, &[
        "encrypted_content", "encryptedContent", "signature", "thoughtSignature", "thought_signature", "thinkingSignature",
        "thinking_signature", "reasoning_encrypted_content", "encrypted_reasoning", "redacted_thinking",
    ]),
    (Class::DELTA, &["delta", "chunk", "partial_json", "candidates", "textDelta", "text_delta"]),
    (Class::TEXT, &[
        "text", "content", "partial_json", "chunk", "delta", "thinking", "reasoning_content", "reasoning", "arguments",
        "output", "textDelta", "text_delta", "input", "data",
    ]),
    (Class::LANE, &[
        "index", "item_id", "itemId", "output_index", "content_index", "summary_index", "messageId", "message_id",
        "stream", "streamId", "stream_id", "partID", "call_id", "parent", "type", "sessionUpdate",
    ]),
    (Class::COUNT, &[
        "input_tokens", "output_tokens", "total_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
        "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens", "cached_input_tokens", "reasoning_output_tokens",
        "prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens", "inputTokens", "outputTokens",
        "totalTokens", "cachedInputTokens", "reasoningTokens", "cacheReadInputTokens", "cacheCreationInputTokens",
        "promptTokenCount", "candidatesTokenCount", "totalTokenCount", "cachedContentTokenCount", "thoughtsTokenCount",
        "max_tokens", "maxTokens", "max_output_tokens", "duration_ms", "durationMs", "duration", "totalDurationMs",
    ]),
    (Class::UNIQUE, &[
        "uuid", "parentUuid", "leafUuid", "logicalParentUuid", "messageId", "message_id", "sessionId", "session_id",
        "sessionID", "id", "parentId", "parent_id", "promptId", "turn_id", "turnId", "request_id", "requestId",
        "timestamp", "ts", "time", "created_at", "createdAt", "updated_at", "updatedAt", "startTime", "endTime",
        "lastUpdated", "started_at", "completed_at", "tool_use_id", "toolUseId", "toolUseID", "tool_call_id",
        "toolCallId", "toolCallID", "call_id", "callId", "callID", "sourceToolUseID", "parentToolUseID",
    ]),
    (Class::AGAIN, &["toolUseResult", "tool_use_result"]),
    (Class::TYPE, &["type", "kind", "sessionUpdate", "event", "object"]),
];

/// How long a key may be to be remembered.
const LONGEST: usize = 28;

/// How many keys are remembered.
const PLACES: usize = 512;

/// Keys that were looked at before: what they tell, and that nothing is to be found in them. Records of one log have
/// the same few keys; those with anything in them are never remembered.
pub(super) struct Keys {
    places: Box<[Slot]>,
    /// How many were remembered ever.
    count: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    key: [u8; LONGEST],
    len: u8,
    known: Known,
}

impl Slot {
    #[inline]
    fn is(&self, key: &[u8]) -> bool {
        usize::from(self.len) == key.len()
            && self.known.name != Name::OTHER
            && same(&self.key[..key.len()], key)
    }
}

/// What is known of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Known {
    pub(super) class: Class,
    pub(super) name: Name,
}

/// A number for the name that a value is given to: two that are spelled differently never have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Name(u32);

impl Name {
    /// One that is not remembered, or not by a number.
    pub(super) const OTHER: Self = Self(0);
    /// There is no name.
    pub(super) const NONE: Self = Self(1);

    #[inline]
    pub(super) fn number(self) -> u32 {
        self.0
    }
}

impl Keys {
    pub(super) fn new() -> Self {
        let empty = Slot {
            key: [0; LONGEST],
            len: 0,
            known: Known::default(),
        };
        Self {
            places: vec![empty; PLACES].into(),
            count: 0,
        }
    }

    /// What is known of a key. It has a number when it is known to be clean.
    #[inline]
    pub(super) fn known(&self, key: &[u8]) -> Known {
        let slot = slot(key);
        // Each has two places, so that two keys do not drive each other out.
        if self.places[slot].is(key) {
            return self.places[slot].known;
        }
        if self.places[slot ^ 1].is(key) {
            return self.places[slot ^ 1].known;
        }
        Known {
            class: Class::of(key),
            name: Name::OTHER,
        }
    }

    /// Remembers a key in which nothing was found.
    pub(super) fn remember(&mut self, key: &[u8], class: Class) -> Known {
        let mut known = Known {
            class,
            name: Name::OTHER,
        };
        let Ok(len) = u8::try_from(key.len()) else {
            return known;
        };
        if key.len() > LONGEST || self.count >= u32::MAX - 2 {
            return known;
        }
        self.count += 1;
        known.name = Name(self.count + Name::NONE.0);
        let slot = slot(key);
        let free = self.places[slot].known.name == Name::OTHER;
        let place = &mut self.places[if free { slot } else { slot ^ 1 }];
        place.key[..key.len()].copy_from_slice(key);
        (place.len, place.known) = (len, known);
        known
    }
}

#[inline]
fn slot(key: &[u8]) -> usize {
    // The upper bits of a product are the mixed ones.
    usize::try_from(mix(0, key) >> 48).unwrap_or_default() % PLACES
}

/// A hash of short bytes: by the first and the last of them, and their number.
#[inline]
pub(super) fn mix(before: u64, bytes: &[u8]) -> u64 {
    let (first, last) = ends(bytes);
    let mixed = before ^ first ^ last.rotate_left(29);
    mixed
        .wrapping_add(bytes.len() as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The first and last bytes, eight or fewer of each.
#[inline]
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (
            u64::from(u32::from_le_bytes(*first)),
            u64::from(u32::from_le_bytes(*last)),
        );
    }
    let all = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
    (bytes.iter().fold(0, all), 0)
}

/// Whether short bytes of one length are the same. Most are too short for a call to be worth it.
#[inline]
pub(super) fn same(left: &[u8], right: &[u8]) -> bool {
    if ends(left) != ends(right) {
        return false;
    }
    left.len() <= 16 || left == right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_remembered_by_all_of_their_bytes() {
        let mut keys = Keys::new();
        let known = |keys: &Keys, key: &[u8]| keys.known(key).name != Name::OTHER;
        assert!(!known(&keys, b""));
        let none = keys.remember(b"", Class::NONE);
        let path = keys.remember(b"file_path", Class::of(b"file_path"));
        assert_ne!(none.name, path.name);
        assert_eq!(keys.known(b""), none);
        assert_eq!(keys.known(b"file_path"), path);
        assert!(path.class.any(Class::PATH));
        assert!(!known(&keys, b"file_pathX"));
        assert!(keys.known(b"path").class.any(Class::PATH));
        let long = [b'k'; 40];
        assert_eq!(keys.remember(&long, Class::NONE).name, Name::OTHER);
        assert!(!known(&keys, &long));
    }

    #[test]
    fn a_number_is_of_one_key() {
        let mut keys = Keys::new();
        let mut numbers = rustc_hash::FxHashSet::default();
        for key in 0..4 * PLACES {
            let key = format!("key {key}");
            assert!(numbers.insert(keys.remember(key.as_bytes(), Class::NONE).name.0));
        }
        assert!(!numbers.contains(&Name::NONE.0) && !numbers.contains(&Name::OTHER.0));
    }

    #[test]
    fn short_bytes_are_compared_whole() {
        let bytes: Vec<u8> = (0..40).collect();
        for len in 0..40 {
            assert!(same(&bytes[..len], &bytes[..len]));
            for at in 0..len {
                let mut other = bytes.clone();
                other[at] ^= 0x80;
                assert!(!same(&bytes[..len], &other[..len]), "{len} {at}");
            }
        }
    }
}
