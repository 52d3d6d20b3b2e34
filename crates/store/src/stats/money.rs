//! What each log says of its own sums, beside what we make of it: the table in `docs/money.md`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use quipu_agents::Host;
use quipu_model::{Money, Usage};
use quipu_prices::Prices;

use super::tests::{fixtures, imported};
use super::{Compared, Explained, Reason};
use crate::catalogue::{Filter, Order};

/// Set to make the table again.
const AGAIN: &str = "QUIPU_MONEY";

const HEAD: &str = "| log | calls | tokens | the log's own | difference | dollars | the log's own | difference | why |
|---|---:|---:|---:|---:|---:|---:|---:|---|
";

#[test]
fn sums_of_logs_are_ours_or_are_explained() {
    let Some(root) = fixtures() else {
        return;
    };
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.retain(|file| has_sums(file));
    let directory = tempfile::tempdir().unwrap();
    let host = Host::new(directory.path().join("home"), |_| None);
    let prices = Prices::builtin();
    let (mut table, mut unexplained) = (String::from(HEAD), Vec::new());
    for (number, file) in files.iter().enumerate() {
        // Each by itself: what they share with each other is no matter here.
        let store = imported(&directory.path().join(number.to_string()), &host, file);
        let all = Filter {
            subagents: true,
            duplicates: true,
            ..Filter::default()
        };
        for row in store.catalogue().list(&all, Order::Oldest, None).unwrap() {
            let explained = store.explain(row, &Filter::default(), &prices).unwrap();
            let name = file.strip_prefix(&root).unwrap().to_string_lossy();
            let (tokens, cost) = (explained.compared_tokens(), explained.compared_cost());
            if tokens.is_none() && cost.is_none() {
                continue;
            }
            let why = reasons(tokens.as_ref(), cost.as_ref());
            if why.iter().any(|reason| reason.is_unexplained()) {
                unexplained.push(format!("{name}: {why:?}"));
            }
            line(
                &mut table,
                &name,
                &explained,
                tokens.as_ref(),
                cost.as_ref(),
                &why,
            );
        }
        drop(store);
        std::fs::remove_dir_all(directory.path().join(number.to_string())).unwrap();
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/money.md");
    let text = std::fs::read_to_string(&docs).unwrap();
    let at = text.find(HEAD).expect("the page has the table");
    if std::env::var_os(AGAIN).is_some() {
        let page = format!("{}{table}", &text[..at]);
        let mut file = std::fs::File::create(&docs).unwrap();
        std::io::Write::write_all(&mut file, page.as_bytes()).unwrap();
    } else {
        let kept = &text[at..];
        assert!(
            kept == table,
            "docs/money.md is not what the logs come to; {AGAIN}=1 makes it again:\n{table}"
        );
    }
    assert!(unexplained.is_empty(), "{unexplained:#?}");
}

fn reasons<'r>(
    tokens: Option<&'r Compared<Usage>>,
    cost: Option<&'r Compared<Money>>,
) -> Vec<&'r Reason> {
    let tokens = tokens.into_iter().flat_map(|it| &it.why);
    tokens
        .chain(cost.into_iter().flat_map(|it| &it.why))
        .collect()
}

fn line(
    table: &mut String,
    name: &str,
    explained: &Explained,
    tokens: Option<&Compared<Usage>>,
    cost: Option<&Compared<Money>>,
    why: &[&Reason],
) {
    let signed = |more: i128| {
        if more == 0 {
            "0".to_owned()
        } else {
            format!("{more:+}")
        }
    };
    let (theirs, more) = tokens.map_or_else(Default::default, |it| {
        let (ours, theirs) = (it.ours.total(), it.theirs.total());
        (
            theirs.to_string(),
            signed(i128::from(ours) - i128::from(theirs)),
        )
    });
    let (their_cost, more_cost) = cost.map_or_else(Default::default, |it| {
        (it.theirs.to_string(), (it.ours - it.theirs).to_string())
    });
    let spent = &explained.spent;
    let dollars = match spent.dollars() {
        None => "no price".to_owned(),
        Some(sum) if spent.is_priced() => sum.to_string(),
        Some(sum) => format!("{sum} + ?"),
    };
    let why: Vec<String> = why.iter().map(ToString::to_string).collect();
    writeln!(
        table,
        "| {name} | {} | {} | {theirs} | {more} | {dollars} | {their_cost} | {more_cost} | {} |",
        spent.calls,
        explained.log.total(),
        why.join("; ")
    )
    .unwrap();
}

/// Whether a log has sums of its own. Those that have none need not be imported, which takes longer.
fn has_sums(file: &Path) -> bool {
    let bytes = std::fs::read(file).unwrap();
    let Some((family, dialect)) = quipu_agents::identify(&bytes, true) else {
        return false;
    };
    let origin = quipu_agents::Origin {
        path: file,
        part: None,
    };
    let reader = family.open(&dialect, &origin, None).unwrap();
    let mut feed = quipu_agents::Feed::new(dialect.framing, reader);
    let mut sink = quipu_agents::Collect::default();
    feed.push(&bytes, &mut sink);
    // A log that ends too early still tells what it told.
    drop(feed.finish(&mut sink));
    let session = feed.session();
    session.vendor_usage.is_some() || session.vendor_cost.is_some()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, files);
        } else if path.file_name().is_some_and(|name| name != "MANIFEST.tsv") {
            files.push(path);
        }
    }
}
