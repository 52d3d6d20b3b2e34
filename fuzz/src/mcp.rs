//! What the tee between an agent and an MCP server understands of what passes.

use quipu_proxy::mcp::{Conversation, Seen, Side};

/// The longest line that is looked at: short, so that lines beyond it are met.
const MOST: usize = 200;

/// Reading never panics, and does not depend on the pieces in which bytes come. The first byte says how long pieces
/// are; the second side speaks where a line of the input begins with `>`.
pub fn conversation(bytes: &[u8]) {
    let Some((first, text)) = bytes.split_first() else {
        return;
    };
    let size = usize::from(*first) + 1;
    let lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
    assert_eq!(understood(&lines, usize::MAX), understood(&lines, size));
}

fn understood(lines: &[&[u8]], size: usize) -> Vec<String> {
    let mut conversation = Conversation::new(MOST);
    let mut all = Vec::new();
    for line in lines {
        let (side, line) = match line.strip_prefix(b">") {
            Some(line) => (Side::Server, line),
            None => (Side::Agent, *line),
        };
        for piece in line.chunks(size) {
            conversation.push(side, piece, &mut |seen| all.push(words(seen)));
        }
    }
    conversation.finish(&mut |seen| all.push(words(seen)));
    all
}

/// What was seen, without the time it took.
fn words(seen: &Seen<'_>) -> String {
    match seen {
        Seen::Result {
            call,
            output,
            error,
            ..
        } => format!("{call:?} {output} {error:?}"),
        other => format!("{other:?}"),
    }
}
