//! docs/json.md, written from the types.

use std::io::Write as _;
use std::path::Path;

use crate::describe::{Book, Described as _};
use crate::{
    annotations, blocks, context, convert, cord, doctor, execution, explain, home, import, keys,
    prune, redact, repair, search, serve, share, show, stats, timeline, tools, trace, transcript,
    tree, verify,
};

const HEAD: &str = "\
# The JSON that commands write

Every listing has `--json` (one document) or `--jsonl` (one object a line). Within a major version fields are added,
never renamed or removed. This page is written from the types of `crates/api`, which the command fills: a program in
Rust can read every document with them.

- A *time* is RFC 3339 in UTC, as text.
- *Dollars* are a decimal number as text, exact to the last digit.
- `null` is unknown, which is not zero.
- Characters that a terminal might act on or that make text look like other text (controls, direction marks,
  zero-width characters) are written as `\\uXXXX`, also in lines that come from a file.
";

fn page() -> String {
    let mut book = Book::default();
    let mut page = format!("{HEAD}\n| command | writes |\n|---|---|\n");
    macro_rules! commands {
        ($($command:literal = $shape:ty,)+) => {
            $(
                let shape = <$shape>::describe(&mut book);
                page.push_str(&format!("| {} | {shape} |\n", $command));
            )+
        };
    }
    commands! {
        "`quipu --json`" = home::Home,
        "`import --json`" = import::Import,
        "`list --json`" = Vec<transcript::Transcript>,
        "`list --jsonl`, each line" = transcript::Transcript,
        "`search --json`" = Vec<search::Hit>,
        "`search --jsonl`, each line" = search::Hit,
        "`search --count --json`" = search::Matches,
        "`show --json` of a session" = show::ShownSession,
        "`show --json` of a recorded run" = show::ShownRun,
        "`show --jsonl`, each line" = serde_json::Value,
        "`tree --json` of a session" = tree::SessionTree,
        "`tree --json` of a recorded run" = tree::Forest,
        "`stats --json`" = stats::Stats,
        "`stats explain --jsonl`, each line" = explain::ExplainLine,
        "`stats waste --json`" = stats::WasteReport,
        "`stats budget --json`" = stats::Budgets,
        "`stats blocks --json`" = blocks::Blocks,
        "`stats blocks --jsonl`, each line" = blocks::UsageBlock,
        "`label ID list --json`, `note ID --json`" = annotations::Annotations,
        "`label --json`" = Vec<annotations::LabelCount>,
        "the timeline of a transcript (HTTP)" = timeline::Timeline,
        "the context of a transcript (HTTP)" = context::ContextTurns,
        "the cord of a transcript (HTTP)" = cord::Cord,
        "who asks (HTTP)" = cord::Me,
        "logs that are deleted soon (HTTP)" = home::Expiring,
        "what lists of transcripts work out, with `fields` (HTTP)" = serve::ListedTranscript,
        "the tools of a transcript or of many (HTTP)" = tools::ToolLedger,
        "`doctor --json`" = doctor::Doctor,
        "`prune --json`" = prune::Pruned,
        "`verify --json`" = Vec<verify::Checked>,
        "`repair --json`" = Vec<repair::Mended>,
        "`export --report FILE`, `convert --report FILE`; a list of them for more than one session"
            = convert::Conversion,
        "`redact --json`" = redact::Redacted,
        "`redact --list-rules --json`" = redact::Rules,
        "`share --review --json`" = share::Review,
        "`share --to bundle`, in `receipt.json`" = share::Bundle,
        "`keys new --json`" = keys::NewKey,
        "`keys list --json`" = Vec<keys::Key>,
        "`log --json`" = trace::Log,
        "`log --jsonl`, each line" = trace::LogRecord,
        "`agentlog list --json`" = Vec<trace::Trace>,
        "`agentlog list --jsonl`, each line" = trace::Trace,
        "`agentlog keep --json`" = Vec<trace::KeptTrace>,
        "`agentlog blobs --json`" = Vec<trace::Blob>,
        "`agentlog gc --json`" = trace::UnusedBlobs,
        "`GET /api/v1/workflows`" = Vec<execution::WorkflowRow>,
        "`GET /api/v1/workflows/{name}`" = execution::WorkflowAbout,
        "`POST /api/v1/workflows/validate`" = execution::WorkflowChecked,
        "`GET /api/v1/executions`" = execution::ExecutionPage,
        "`GET /api/v1/executions/{id}`, and what starts, ends or resumes one" = execution::Execution,
    }
    page.push_str("\nEvents, as `show --jsonl` writes them, are lines of the exchange format, with `message.system` and `note` beside its types.\n");
    page + "\n## Types\n" + &book.write()
}

/// `QUIPU_BLESS=1` writes the page again.
#[test]
fn the_documentation_of_json_is_what_the_types_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let page = page();
    if std::env::var_os("QUIPU_BLESS").is_some() {
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(page.as_bytes()).unwrap();
        return;
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text == page,
        "{} is not what the types say; QUIPU_BLESS=1 writes it again",
        path.display()
    );
}

/// Scripts rely on one way of writing names.
#[test]
fn every_name_is_in_snake_case() {
    let page = page();
    let names = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = names.filter_map(|line| line.split_once("` |"));
    let mut counted = 0;
    for (name, _) in names.filter(|(name, _)| !name.contains([' ', '-'])) {
        let is_snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(name.chars().all(is_snake), "{name}");
        counted += 1;
    }
    assert!(counted > 300, "{counted}");
}
