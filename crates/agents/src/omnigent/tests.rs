use rusqlite::Connection;

use super::{Omnigent, ROWS};
use crate::testkit::{Read, hostile, read_as};
use crate::{Family as _, Gathered, Head, rows};

/// One table for conversations, kinds by name.
const FIRST: &str = r#"
create table conversations (id text primary key, root_conversation_id text, parent_conversation_id text,
  created_at integer, updated_at integer, title text, kind text, model_override text, sub_agent_name text,
  workspace text, git_branch text, session_usage text, api_secret text);
create table conversation_items (id text, conversation_id text, position integer, type text, data text,
  search_text text, created_at integer);
create table secrets (name text, value text);
insert into secrets values ('k', 'v');
insert into conversations values
  ('conv_a', 'conv_a', null, 1767323045, 1767323060, 'Tidy up', 'default', null, null, '/code', 'main',
   '{"input_tokens":30,"output_tokens":4,"total_cost_usd":0.25}', 'hush'),
  ('conv_b', 'conv_a', 'conv_a', 1767323050, 1767323055, null, 'sub_agent', null, 'scout', null, null, null, null);
insert into conversation_items values
  ('i1', 'conv_a', 1, 'message', '{"role":"user","content":[{"type":"input_text","text":"tidy up"}]}', 'tidy up', 1767323045),
  ('i2', 'conv_a', 2, 'reasoning', '{"agent":"polly","summary":[{"type":"summary_text","text":"Look first."}]}', '', 1767323046),
  ('i3', 'conv_a', 3, 'function_call', '{"agent":"polly","name":"shell","arguments":"{\"command\":\"ls\"}","call_id":"c1"}', '', 1767323047),
  ('i4', 'conv_a', 4, 'function_call_output', '{"call_id":"c1","output":"a.txt"}', '', 1767323048),
  ('i5', 'conv_a', 5, 'message', '{"role":"assistant","agent":"polly","content":[{"type":"output_text","text":"Done."}]}', '', 1767323049),
  ('i6', 'conv_a', 6, 'compaction', '{"summary":"Tidied.","model":"m","token_count":9}', '', 1767323050),
  ('i7', 'conv_a', 7, 'error', '{"source":"execution","code":"E","message":"broken"}', '', 1767323051),
  ('i8', 'conv_a', 8, 'hologram', '{"x":1}', '', 1767323052),
  ('i9', 'conv_b', 1, 'message', '{"role":"user","content":[{"type":"input_text","text":"scout"}]}', '', 1767323051);
"#;

/// Several tables, kinds by number, ids as bytes.
const SPLIT: &str = r#"
create table conversations (workspace_id integer, id blob, root_conversation_id blob,
  parent_conversation_id blob, created_at integer, updated_at integer, title text);
create table omnigent_conversation_metadata (workspace_id integer, id blob, kind smallint, workspace text,
  git_branch text, sub_agent_name text, session_usage blob);
create table agent_configuration (workspace_id integer, conversation_id blob, model_override text, environment text);
create table conversation_items (workspace_id integer, id blob, conversation_id blob, position integer,
  type smallint, data text, search_text text);
insert into conversations values (7, x'00112233445566778899aabbccddeeff', null, x'ff', 1767323045, 1767323060, 'Split');
insert into omnigent_conversation_metadata values (7, x'00112233445566778899aabbccddeeff', 2, '/w', null, 'scout', null);
insert into agent_configuration values (7, x'00112233445566778899aabbccddeeff', 'm-2', 'TOKEN=hush');
insert into conversation_items values
  (7, x'01', x'00112233445566778899aabbccddeeff', 1, 1, '{"role":"user","content":[{"type":"input_text","text":"hello"}]}', ''),
  (7, x'02', x'00112233445566778899aabbccddeeff', 2, 10, '{"model":"polly","kind":"skill","name":"tidy","arguments":""}', ''),
  (8, x'03', x'00112233445566778899aabbccddeeff', 1, 1, '{"role":"user","content":[{"type":"input_text","text":"another"}]}', '');
"#;

fn database(script: &str) -> Connection {
    let database = Connection::open_in_memory().unwrap();
    database.execute_batch(script).unwrap();
    database
}

fn gathered(database: &Connection, part: &str) -> (String, Read) {
    let mut lines = Vec::new();
    let gather = Omnigent.gather().unwrap();
    gather
        .write(&Gathered::Database(database), part, &mut lines)
        .unwrap();
    let read = read_as(&Omnigent, ROWS, &lines, "chat.db");
    (String::from_utf8(lines).unwrap(), read)
}

fn parts(database: &Connection) -> Vec<String> {
    let tables = rows::tables(database).unwrap();
    let found = Head::of_database(&tables, |head| Omnigent.sniff(head));
    assert_eq!(found.map(|found| found.dialect), Some(ROWS));
    let parts = Omnigent.gather().unwrap();
    let parts = parts.parts(&Gathered::Database(database)).unwrap();
    parts.into_iter().map(|part| part.id).collect()
}

#[test]
fn a_conversation_reads_item_by_item() {
    let database = database(FIRST);
    assert_eq!(parts(&database), ["conv_a", "conv_b"]);
    let (lines, read) = gathered(&database, "conv_a");
    assert_eq!(
        read.words(),
        [
            "note.session",
            "message.user",
            "note.mode",
            "message.assistant",
            "tool.call",
            "tool.result",
            "message.assistant",
            "note.compaction",
            "note.error",
            "note.unknown_record",
            "note.session",
            "note.usage",
            "note.unknown_record",
        ]
    );
    let session = &read.session;
    assert_eq!(session.cwd.as_deref(), Some("/code"));
    assert_eq!(session.vendor_cost.as_deref(), Some("0.25"));
    // The agents that were run count it in logs of their own.
    assert!(read.usage().is_empty());
    // What is not known is named, and stays where it is.
    let unknown = &read.ledger.drift.unknown;
    assert!(unknown.contains_key("type:column.conversations.api_secret"));
    assert!(!lines.contains("hush"), "{lines}");
    let (_, child) = gathered(&database, "conv_b");
    assert_eq!(child.session.parent.as_deref(), Some("conv_a"));
}

#[test]
fn a_conversation_in_several_tables_reads_as_well() {
    let database = database(SPLIT);
    let id = "7:00112233445566778899aabbccddeeff";
    assert_eq!(parts(&database), [id]);
    let (lines, read) = gathered(&database, id);
    assert_eq!(
        read.words(),
        [
            "note.session",
            "message.user",
            "note.mode",
            "note.context",
            "note.session",
            "note.session",
            "note.session",
            "note.unknown_record",
        ]
    );
    assert_eq!(read.session.id.as_deref(), Some(id));
    assert_eq!(read.session.parent.as_deref(), Some("7:ff"));
    assert_eq!(read.session.cwd.as_deref(), Some("/w"));
    assert!(
        !lines.contains("hush") && !lines.contains("another"),
        "{lines}"
    );
}

#[test]
fn what_was_used_may_be_compressed() {
    let database = database(SPLIT);
    let usage = br#"{"input_tokens":3,"output_tokens":2}"#;
    let mut packed = vec![0, 1];
    packed.extend(zstd::encode_all(&usage[..], 3).unwrap());
    let update = "update omnigent_conversation_metadata set session_usage = ?1";
    database.execute(update, [&packed]).unwrap();
    let (_, read) = gathered(&database, "7:00112233445566778899aabbccddeeff");
    let told = read.session.vendor_usage.unwrap();
    assert_eq!((told.input, told.output), (Some(3), Some(2)));
    packed[1] = 9;
    database.execute(update, [&packed]).unwrap();
    let gather = Omnigent.gather().unwrap();
    let part = "7:00112233445566778899aabbccddeeff";
    let error = gather.write(&Gathered::Database(&database), part, &mut Vec::new());
    assert!(error.unwrap_err().to_string().contains("method 9"));
}

#[test]
fn anything_may_stand_in_a_line() {
    let (lines, _) = gathered(&database(FIRST), "conv_a");
    hostile(&Omnigent, ROWS, &lines);
}
