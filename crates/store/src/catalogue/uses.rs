//! What a transcript used: models, tools, time. One row a slot of time.

use quipu_agents::{SLOT_MS, Summary, Tokens, service_number};
use rusqlite::{Connection, params};

use super::write::signed;

/// The tables that are filled here.
const TABLES: [&str; 4] = ["spend", "activity", "tool_use", "waste"];

/// Puts down what a transcript used, in place of what was known of it.
pub(super) fn put(
    database: &Connection,
    transcript: i64,
    summary: &Summary,
) -> rusqlite::Result<()> {
    for table in TABLES {
        database
            .prepare_cached(&format!("delete from {table} where transcript = ?1"))?
            .execute([transcript])?;
    }
    put_spend(database, transcript, summary)?;
    put_activity(database, transcript, summary)?;
    put_waste(database, transcript, summary)
}

/// The statement that adds a row: the transcript, the slot, and so many values in all. What has no time is put
/// to the beginning of the session, where that is known.
fn inserting(table: &str, values: usize) -> String {
    let rest: Vec<String> = (3..=values).map(|at| format!("?{at}")).collect();
    format!(
        "insert into {table} values (?1,
             coalesce(?2, (select started_at / {SLOT_MS} from transcript where id = ?1)), {})",
        rest.join(", ")
    )
}

fn put_spend(database: &Connection, transcript: i64, summary: &Summary) -> rusqlite::Result<()> {
    let mut insert = database.prepare_cached(&inserting("spend", 15))?;
    for (key, spend) in &summary.spend {
        let [
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            reasoning,
        ] = buckets(&spend.tokens);
        insert.execute(params![
            transcript,
            key.by.slot,
            key.model,
            key.by.subagent,
            service_number(key.service),
            key.context,
            signed(spend.calls),
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            reasoning,
            signed(spend.searches),
            key.told.then(|| spend.told().to_string()),
        ])?;
    }
    Ok(())
}

/// Puts down which models a log names and which sub-agents it began, in place of what was known of it.
pub(super) fn put_names(
    database: &Connection,
    transcript: i64,
    summary: &Summary,
    named: &dyn Fn(String) -> String,
) -> rusqlite::Result<()> {
    for table in ["model_named", "spawned"] {
        database
            .prepare_cached(&format!("delete from {table} where transcript = ?1"))?
            .execute([transcript])?;
    }
    let mut insert = database.prepare_cached("insert into model_named values (?1, ?2)")?;
    for model in &summary.models {
        insert.execute(params![transcript, model])?;
    }
    let mut insert = database.prepare_cached("insert into spawned values (?1, ?2, ?3)")?;
    for (child, call) in &summary.spawned {
        insert.execute(params![transcript, named(child.clone()), call])?;
    }
    Ok(())
}

fn put_activity(database: &Connection, transcript: i64, summary: &Summary) -> rusqlite::Result<()> {
    let mut insert = database.prepare_cached(&inserting("activity", 9))?;
    for (by, did) in &summary.activity {
        insert.execute(params![
            transcript,
            by.slot,
            by.subagent,
            signed(did.prompts),
            signed(did.replies),
            signed(did.tool_calls),
            signed(did.failures),
            signed(did.denials),
            signed(did.active_ms),
        ])?;
    }
    let mut insert = database.prepare_cached(&inserting("tool_use", 6))?;
    for (key, used) in &summary.tools {
        insert.execute(params![
            transcript,
            key.by.slot,
            key.by.subagent,
            key.tool,
            signed(used.calls),
            signed(used.failures),
        ])?;
    }
    Ok(())
}

fn put_waste(database: &Connection, transcript: i64, summary: &Summary) -> rusqlite::Result<()> {
    let mut insert = database.prepare_cached(&inserting("waste", 13))?;
    for (key, waste) in &summary.waste {
        let [
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            reasoning,
        ] = buckets(&waste.tokens);
        insert.execute(params![
            transcript,
            key.slot,
            key.kind.number(),
            key.model,
            service_number(key.service),
            key.context,
            signed(waste.calls),
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            reasoning,
        ])?;
    }
    Ok(())
}

fn buckets(tokens: &Tokens) -> [Option<i64>; 6] {
    [
        tokens.input,
        tokens.cache_read,
        tokens.cache_write,
        tokens.cache_write_1h,
        tokens.output,
        tokens.reasoning,
    ]
    .map(|bucket| bucket.map(signed))
}
