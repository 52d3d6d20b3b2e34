//! `quipu search`

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anstyle::Style;
use jiff::tz::TimeZone;
use quipu_api::search::{Hit, HitEvent, Matches};
use quipu_api::serve::SearchAnswer;
use quipu_model::Place;
use quipu_record::{Clock as _, SystemClock};
use quipu_search::query::{Clock, Query, QueryError};
use quipu_store::Store;
use quipu_store::documents::hit;
use quipu_store::facade::ShortIds;
use quipu_store::search::{Ask, Found, Pattern, SearchError, Show, Sort};

use super::list::project;
use super::resume::quote;
use crate::args::{Search, SearchSort};
use crate::config::Config;
use crate::error::{CommandError, Exit, Result};
use crate::locate::HomePlace;
use crate::terminal::{BOLD, CYAN, DIM, RED, YELLOW, clean, columns, count, fit, out, say};
use crate::{asked, json, redaction, when};

/// What stands before a snippet.
const INDENT: &str = "    ";

/// How many lines of a terminal a snippet takes.
const LINES: usize = 2;

/// How long a snippet is in JSON, in bytes.
const JSON_SNIPPET: usize = 300;

pub(crate) fn run(args: &Search, place: &HomePlace) -> Result<Exit> {
    let text = args.query.join(" ");
    let Some(store) = place.store()? else {
        let flag = place.flag();
        say(&format!(
            "nothing is kept yet; `quipu {flag}up --once` imports what is on this machine"
        ));
        if args.json {
            writeln!(out(), "{}", json::document(&Vec::<Hit>::new())?)?;
        }
        return Ok(Exit::Done);
    };
    let width = columns().saturating_sub(INDENT.len()).max(20);
    let snippet = if args.json || args.jsonl {
        JSON_SNIPPET
    } else {
        width * LINES
    };
    let limit = if args.limit == 0 {
        usize::MAX / 4
    } else {
        args.limit
    };
    if args.regex {
        return pattern(args, &text, &store, place, limit, snippet);
    }
    let clock = Clock {
        now: SystemClock.now(),
        zone: TimeZone::system(),
    };
    let query = Query::parse(&text, &clock).map_err(|error| wrong(&error, &text))?;
    let config = Config::load(&place.home()?)?;
    if args.count {
        let matches = store.count_matches(&query, &config.prices());
        let matches = matches.map_err(failed)?;
        let mut out = out();
        if args.json || args.jsonl {
            writeln!(out, "{}", json::line(&Matches { matches })?)?;
        } else {
            writeln!(out, "{matches}")?;
        }
        out.flush()?;
        return Ok(Exit::Done);
    }
    let guard = shown(args, place)?;
    let served = match guard {
        Show::Guarded => served(args, &text, &place.home()?, snippet),
        // The server shows what anybody may see.
        _ => None,
    };
    let answer = if let Some(answer) = served {
        answer
    } else {
        let ask = Ask {
            query: &query,
            sort: match args.sort {
                SearchSort::Relevance => Sort::Relevance,
                SearchSort::Newest => Sort::Newest,
                SearchSort::Cost => Sort::Cost,
            },
            limit,
            context: args.context,
            copies: args.copies,
            snippet,
            guard,
        };
        let answer = store.search(&ask, &config.prices()).map_err(failed)?;
        SearchAnswer {
            hits: hits(&answer.found, &store)?,
            more: answer.more,
            not_indexed: answer.not_indexed,
            problem: None,
        }
    };
    write(args, &answer.hits, &store, place)?;
    finish(args, answer.hits.len(), answer.more);
    if answer.not_indexed > 0 {
        let those = count(answer.not_indexed, "session");
        say(&format!(
            "{those} cannot be searched yet; `quipu {}import` goes on with it",
            place.flag()
        ));
    }
    Ok(Exit::Done)
}

/// What the server of the home finds, where one runs and is sure to find the same. Its time zone and its prices may be others.
fn served(args: &Search, text: &str, home: &Path, snippet: usize) -> Option<SearchAnswer> {
    let lower = text.to_lowercase();
    let is_other = ["since:", "until:", "cost:"]
        .iter()
        .any(|it| lower.contains(it));
    // What the server takes at most.
    let takes = (1..=200).contains(&args.limit)
        && args.context <= 10
        && (40..=4000).contains(&snippet)
        && text.len() <= 4096;
    let sort = match args.sort {
        SearchSort::Relevance => "relevance",
        SearchSort::Newest => "newest",
        SearchSort::Cost => return None,
    };
    if is_other || !takes || !asked::may_ask(args.no_server) {
        return None;
    }
    let target = format!(
        "/api/v1/search?q={}&sort={sort}&limit={}&context={}&copies={}&snippet={snippet}",
        asked::encoded(text),
        args.limit,
        args.context,
        args.copies,
    );
    let mut answer: SearchAnswer = asked::ask(home, &target)?;
    for hit in &mut answer.hits {
        // Reading a number of so many digits may miss its last bit, which the number that was written does not have.
        #[expect(clippy::cast_possible_truncation, reason = "it was one of 32 bits")]
        let score = hit.score as f32;
        hit.score = f64::from(score);
    }
    Some(answer)
}

fn hits(found: &[Found], store: &Store) -> Result<Vec<Hit>> {
    let guard = store.guard()?;
    Ok(found.iter().map(|it| hit(it, guard)).collect())
}

fn pattern(
    args: &Search,
    text: &str,
    store: &Store,
    place: &HomePlace,
    limit: usize,
    snippet: usize,
) -> Result<Exit> {
    let pattern = Pattern::new(text).map_err(failed)?;
    let stop = AtomicBool::new(false);
    let matches = store.search_pattern(
        &pattern,
        limit,
        args.copies,
        (snippet, &shown(args, place)?),
        &stop,
    );
    let matches = matches.map_err(failed)?;
    write(args, &hits(&matches.found, store)?, store, place)?;
    finish(args, matches.found.len(), matches.more);
    for (row, why) in &matches.problems {
        say(&format!("{}: {why}", row.run_id));
    }
    if matches.problems.is_empty() {
        Ok(Exit::Done)
    } else {
        Ok(Exit::Data)
    }
}

/// Secrets are hidden unless they are asked for, and so is what a configured profile removes.
fn shown(args: &Search, place: &HomePlace) -> Result<Show> {
    if args.reveal {
        return Ok(Show::Everything);
    }
    Ok(match redaction::of_screen(place)? {
        Some(guard) => Show::By(guard),
        None => Show::Guarded,
    })
}

fn finish(args: &Search, found: usize, more: bool) {
    if args.json || args.jsonl {
        return;
    }
    if found == 0 {
        say("nothing that is kept says that");
    } else if more {
        say(&format!(
            "the first {found}; there are more (--limit 0 shows all, --count counts them)"
        ));
    }
}

fn wrong(error: &QueryError, query: &str) -> CommandError {
    let wrong = CommandError::usage(error.what.to_string()).details(
        error
            .render(query)
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>(),
    );
    match &error.hint {
        Some(hint) => wrong.hint(hint.clone()),
        None => wrong,
    }
}

fn failed(error: SearchError) -> CommandError {
    match error {
        SearchError::Pattern(why) => CommandError::usage(format!("this is no pattern: {why}")),
        SearchError::Read(error) => error.into(),
        error => CommandError::new(Exit::Environment, error),
    }
}

fn write(args: &Search, hits: &[Hit], store: &Store, place: &HomePlace) -> Result<()> {
    let mut out = out();
    if args.jsonl {
        for hit in hits {
            writeln!(out, "{}", json::line(hit)?)?;
        }
    } else if args.json {
        writeln!(out, "{}", json::document(&hits)?)?;
    } else if !hits.is_empty() {
        let ids = store.short_ids()?;
        for (n, hit) in hits.iter().enumerate() {
            if n > 0 {
                writeln!(out)?;
            }
            person(&mut out, hit, &ids, place)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Who says it: a role, and the tool.
fn speaker(role: &str, tool: Option<&str>) -> String {
    let role = match role {
        "tool_call" => "call",
        "tool_result" => "result",
        role => role,
    };
    match tool {
        Some(tool) => format!("{role} {tool}"),
        None => role.to_owned(),
    }
}

fn person(out: &mut impl Write, hit: &Hit, ids: &ShortIds, place: &HomePlace) -> Result<()> {
    let at = hit.timestamp.as_ref().and_then(|at| at.0.parse().ok());
    let step = Place {
        path: hit.path.clone().unwrap_or_default(),
        iterations: hit.iterations.clone(),
        ..Place::default()
    };
    let mut head = vec![
        hit.agent.clone(),
        hit.project.as_deref().map(project).unwrap_or_default(),
        at.map(when::local).unwrap_or_default(),
        step.label(),
        speaker(&hit.role, hit.tool.as_deref()),
    ];
    head.retain(|part| !part.is_empty());
    if hit.copies > 0 {
        head.push(format!("and in {}", plural(hit.copies)));
    }
    let head = fit(&clean(&head.join("  ")), columns());
    writeln!(out, "{BOLD}{head}{BOLD:#}")?;
    for event in &hit.before {
        context(out, event)?;
    }
    if let Some(why) = &hit.problem {
        writeln!(out, "{INDENT}{YELLOW}{}{YELLOW:#}", clean(why))?;
    } else {
        writeln!(out, "{INDENT}{}", marked(hit, RED.bold()))?;
    }
    for event in &hit.after {
        context(out, event)?;
    }
    let id = quote(&ids.short(&hit.run_id));
    let flag = place.flag();
    let from = match hit.seq {
        0 => String::new(),
        seq => format!(" --from {seq}"),
    };
    writeln!(out, "{INDENT}{CYAN}quipu {flag}show {id}{from}{CYAN:#}")?;
    Ok(())
}

fn plural(copies: u64) -> String {
    match copies {
        1 => "a copy".to_owned(),
        n => format!("{n} copies"),
    }
}

/// An event beside one that was found, on one line.
fn context(out: &mut impl Write, event: &HitEvent) -> Result<()> {
    let begins: String = event.text.chars().take(400).collect();
    let said = one_line(&begins);
    let speaker = speaker(&event.role, event.tool.as_deref());
    let line = format!("{} {speaker}: {said}", event.seq);
    let line = fit(&clean(&line), columns().saturating_sub(INDENT.len()));
    writeln!(out, "{INDENT}{DIM}{line}{DIM:#}")?;
    Ok(())
}

/// The snippet, on one line, with what matches marked.
fn marked(hit: &Hit, style: Style) -> String {
    let snippet = hit.snippet.as_deref().unwrap_or_default();
    let begin = hit.snippet_offset;
    // Where something of the text is in the snippet, if it is.
    let within = |at: u64| {
        let at = usize::try_from(at.checked_sub(begin)?).ok()?;
        (at <= snippet.len()).then_some(at)
    };
    let mut shown = String::new();
    if begin > 0 {
        shown.push('…');
    }
    let mut at = 0;
    for &[from, to] in &hit.matches {
        let (Some(from), Some(to)) = (within(from), within(to)) else {
            continue;
        };
        let (Some(before), Some(found)) = (snippet.get(at..from), snippet.get(from..to)) else {
            continue;
        };
        shown.extend([
            one_line(before),
            style.render().to_string(),
            one_line(found),
            style.render_reset().to_string(),
        ]);
        at = to;
    }
    shown.push_str(&one_line(snippet.get(at..).unwrap_or_default()));
    if begin + (snippet.len() as u64) < hit.text_bytes {
        shown.push('…');
    }
    shown
}

/// Cleaned, and with each run of white space as one space.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut space = false;
    for c in text.chars() {
        if c.is_whitespace() {
            space = true;
            continue;
        }
        if space {
            line.push(' ');
            space = false;
        }
        line.push(c);
    }
    if space {
        line.push(' ');
    }
    clean(&line).into_owned()
}
