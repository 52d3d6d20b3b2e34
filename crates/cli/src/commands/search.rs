//! `quipu search`

use std::io::Write;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use anstyle::Style;
use jiff::tz::TimeZone;
use quipu_api::search::{Hit, Matches};
use quipu_record::{Clock as _, SystemClock};
use quipu_search::query::{Clock, Query, QueryError};
use quipu_store::Store;
use quipu_store::documents::hit;
use quipu_store::facade::ShortIds;
use quipu_store::search::{Ask, Found, Pattern, SearchError, Show, Sort, Spoken};

use super::list::project;
use super::resume::quote;
use crate::args::{Search, SearchSort};
use crate::config::Config;
use crate::error::{CommandError, Exit, Result};
use crate::locate::HomePlace;
use crate::terminal::{BOLD, CYAN, DIM, RED, YELLOW, clean, columns, count, fit, out, say};
use crate::{json, redaction, when};

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
    let prices = Config::load(&place.home()?)?.prices();
    if args.count {
        let matches = store.count_matches(&query, &prices).map_err(failed)?;
        let mut out = out();
        if args.json || args.jsonl {
            writeln!(out, "{}", json::line(&Matches { matches })?)?;
        } else {
            writeln!(out, "{matches}")?;
        }
        out.flush()?;
        return Ok(Exit::Done);
    }
    let answer = store.search(
        &Ask {
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
            guard: shown(args, place)?,
        },
        &prices,
    );
    let answer = answer.map_err(failed)?;
    write(args, &answer.found, &store, place)?;
    finish(args, answer.found.len(), answer.more);
    if answer.not_indexed > 0 {
        let those = count(answer.not_indexed, "session");
        say(&format!(
            "{those} cannot be searched yet; `quipu {}import` goes on with it",
            place.flag()
        ));
    }
    Ok(Exit::Done)
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
    write(args, &matches.found, store, place)?;
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

fn write(args: &Search, found: &[Found], store: &Store, place: &HomePlace) -> Result<()> {
    let mut out = out();
    let guard = store.guard()?;
    if args.jsonl {
        for it in found {
            writeln!(out, "{}", json::line(&hit(it, guard))?)?;
        }
    } else if args.json {
        let all: Vec<Hit> = found.iter().map(|it| hit(it, guard)).collect();
        writeln!(out, "{}", json::document(&all)?)?;
    } else if !found.is_empty() {
        let ids = store.short_ids()?;
        for (n, it) in found.iter().enumerate() {
            if n > 0 {
                writeln!(out)?;
            }
            person(&mut out, it, &ids, place)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Who says it: a role, and the tool.
fn speaker(event: &Spoken) -> String {
    let role = match event.role {
        "tool_call" => "call",
        "tool_result" => "result",
        role => role,
    };
    match &event.tool {
        Some(tool) => format!("{role} {tool}"),
        None => role.to_owned(),
    }
}

fn person(out: &mut impl Write, found: &Found, ids: &ShortIds, place: &HomePlace) -> Result<()> {
    let row = &found.row;
    let at = found.event.at.map(when::local).unwrap_or_default();
    let step = found
        .event
        .place
        .as_ref()
        .map(|place| redaction::masked(&place.label()))
        .unwrap_or_default();
    let mut head = vec![
        row.agent.clone(),
        project(row),
        at,
        step,
        speaker(&found.event),
    ];
    head.retain(|part| !part.is_empty());
    if found.copies > 0 {
        head.push(format!("and in {}", plural(found.copies)));
    }
    let head = fit(&clean(&head.join("  ")), columns());
    writeln!(out, "{BOLD}{head}{BOLD:#}")?;
    for event in &found.before {
        context(out, event)?;
    }
    if let Some(why) = &found.problem {
        writeln!(out, "{INDENT}{YELLOW}{}{YELLOW:#}", clean(why))?;
    } else {
        let text = &found.event.text;
        let shown = marked(text, &found.snippet, &found.marks, RED.bold());
        writeln!(out, "{INDENT}{shown}")?;
    }
    for event in &found.after {
        context(out, event)?;
    }
    let id = quote(&ids.short(&row.run_id));
    let flag = place.flag();
    let from = match found.event.seq {
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
fn context(out: &mut impl Write, event: &Spoken) -> Result<()> {
    let begins: String = event.text.chars().take(400).collect();
    let said = one_line(&begins);
    let line = format!("{} {}: {said}", event.seq, speaker(event));
    let line = fit(&clean(&line), columns().saturating_sub(INDENT.len()));
    writeln!(out, "{INDENT}{DIM}{line}{DIM:#}")?;
    Ok(())
}

/// A part of a text, on one line, with what matches marked.
fn marked(text: &str, part: &Range<usize>, marks: &[Range<usize>], style: Style) -> String {
    let mut shown = String::new();
    if part.start > 0 {
        shown.push('…');
    }
    let mut at = part.start;
    let inside = marks
        .iter()
        .filter(|mark| mark.start >= part.start && mark.end <= part.end);
    for mark in inside {
        shown.push_str(&one_line(&text[at..mark.start]));
        let found = one_line(&text[mark.clone()]);
        shown.extend([
            style.render().to_string(),
            found,
            style.render_reset().to_string(),
        ]);
        at = mark.end;
    }
    shown.push_str(&one_line(&text[at..part.end]));
    if part.end < text.len() {
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
