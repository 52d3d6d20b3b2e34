//! What is added by hand.

use anyhow::{Context as _, Result, bail};
use quipu_model::Money;

use super::table::{Catalogue, HAND, Line, Model, Rates, Span};

const TEXT: &str = include_str!("additions.tsv");

/// Adds the lines of the file to the models they are about.
pub(crate) fn add(to: &mut Catalogue) -> Result<()> {
    for row in TEXT.lines() {
        if !row.is_empty() && !row.starts_with('#') {
            add_row(row, to).with_context(|| format!("additions.tsv: {row}"))?;
        }
    }
    Ok(())
}

fn add_row(row: &str, to: &mut Catalogue) -> Result<()> {
    let columns: Vec<&str> = row.split('\t').collect();
    let [provider, model, service, from, hours, above, rates @ ..] = columns.as_slice() else {
        bail!("too few columns");
    };
    let about = to.get_mut(*provider).context("no such provider")?;
    let model = about.models.get_mut(*model).context("no such model")?;
    let line = Line {
        hours: text(hours),
        above: above.parse()?,
        rates: read(rates)?,
        source: HAND,
    };
    place(model, service, text(from), line)
}

fn text(column: &str) -> String {
    if column == "-" { "" } else { column }.to_owned()
}

fn read(columns: &[&str]) -> Result<Rates> {
    let rate = |text: &str| match text {
        "-" => Ok(None),
        text => Money::parse(text)
            .map(Some)
            .with_context(|| format!("{text} is no price")),
    };
    let [
        input,
        cache_read,
        write_5m,
        write_1h,
        output,
        reasoning,
        searches,
    ] = columns
    else {
        bail!("there must be seven prices");
    };
    Ok(Rates {
        input: rate(input)?,
        cache_read: rate(cache_read)?,
        write_5m: rate(write_5m)?,
        write_1h: rate(write_1h)?,
        output: rate(output)?,
        reasoning: rate(reasoning)?,
        searches: rate(searches)?,
    })
}

fn place(model: &mut Model, service: &str, from: String, line: Line) -> Result<()> {
    let known = ["batch", "fast", "flex", "priority", "standard"];
    let Some(service) = known.iter().find(|word| **word == service) else {
        bail!("no such service");
    };
    let spans = model.services.entry(service).or_default();
    let at = match spans.binary_search_by(|span| span.from.cmp(&from)) {
        Ok(at) => at,
        Err(at) => {
            let lines = Vec::new();
            spans.insert(at, Span { from, lines });
            at
        }
    };
    let lines = &mut spans[at].lines;
    lines.retain(|other| (&other.hours, other.above) != (&line.hours, line.above));
    lines.push(line);
    Ok(())
}
