use std::path::{Path, PathBuf};

use quipu_agents::{Ledger, Session, Spend, SpendKey, Summary, Tokens, ToolKey, ToolUse};
use rusqlite::Connection;

use super::*;

fn reading(id: &str, change: impl FnOnce(&mut Reading)) -> Reading {
    let mut summary = Summary {
        events: 4,
        prompts: 1,
        tool_calls: 2,
        first_at: Some(1_000),
        last_at: Some(2_000),
        title: Some(format!("about {id}")),
        ..Summary::default()
    };
    let tokens = Tokens {
        input: Some(10),
        output: Some(5),
        ..Tokens::default()
    };
    let mut spend = Spend::default();
    (spend.calls, spend.tokens) = (1, tokens);
    summary.spend.insert(spent_on("model-1"), spend);
    summary.models.insert("model-1".to_owned());
    let tool = ToolKey {
        tool: "Bash".to_owned(),
        ..ToolKey::default()
    };
    let used = ToolUse {
        calls: 2,
        failures: 0,
    };
    summary.tools.insert(tool, used);
    let mut reading = Reading {
        key: format!("{id:0>64}"),
        agent: "claude-code".to_owned(),
        dialect: Some("claude"),
        path: PathBuf::from(format!("/logs/{id}.jsonl")),
        part: None,
        stamp: Stamp::default(),
        version: 1,
        read_to: 100,
        manifest: None,
        checkpoint: None,
        ledger: Ledger::default(),
        session: Session {
            id: Some(id.to_owned()),
            cwd: Some("/code/Tower".to_owned()),
            branch: Some("main".to_owned()),
            ..Session::default()
        },
        summary,
        blobs: Vec::new(),
        first_modified: None,
        passes: Passed::default(),
        problem: None,
        received: None,
    };
    change(&mut reading);
    reading
}

fn spent_on(model: &str) -> SpendKey {
    SpendKey {
        model: model.to_owned(),
        ..SpendKey::default()
    }
}

fn ids(catalogue: &SqliteCatalogue, filter: &Filter, order: Order) -> Vec<String> {
    let rows = catalogue.list(filter, order, None).unwrap();
    rows.into_iter().map(|row| row.run_id).collect()
}

fn three() -> SqliteCatalogue {
    let catalogue = SqliteCatalogue::in_memory().unwrap();
    catalogue.put(&reading("aaa1", |_| {})).unwrap();
    let codex = reading("aab2", |reading| {
        reading.agent = "codex".to_owned();
        reading.session.cwd = Some("/code/garden".to_owned());
        reading.session.branch = Some("dev".to_owned());
        reading.summary.last_at = Some(9_000);
        reading.summary.first_at = Some(8_000);
        let spend = &mut reading.summary.spend;
        let used = spend.remove(&spent_on("model-1")).unwrap();
        spend.insert(spent_on("gpt-x"), used);
        reading.summary.models = ["gpt-x".to_owned()].into();
    });
    catalogue.put(&codex).unwrap();
    let child = reading("child", |reading| {
        reading.session.parent = Some("aaa1".to_owned());
        reading.summary.first_at = Some(1_500);
    });
    catalogue.put(&child).unwrap();
    catalogue
}

#[test]
fn what_is_put_in_comes_out() {
    let catalogue = three();
    let row = catalogue.find("aaa1").unwrap();
    assert_eq!(row.title.as_deref(), Some("about aaa1"));
    assert_eq!(row.models, ["model-1"]);
    assert_eq!((row.usage.input, row.usage.output), (Some(10), Some(5)));
    assert_eq!(row.usage.cache_read, None, "unknown is not zero");
    assert_eq!((row.figures.tool_calls, row.figures.calls), (2, 1));
    // The same again changes nothing.
    let before = format!("{row:?}");
    catalogue.put(&reading("aaa1", |_| {})).unwrap();
    assert_eq!(format!("{:?}", catalogue.find("aaa1").unwrap()), before);
}

#[test]
fn filters_and_orders() {
    let catalogue = three();
    let all = Filter::default();
    assert_eq!(ids(&catalogue, &all, Order::Newest), ["aab2", "aaa1"]);
    assert_eq!(ids(&catalogue, &all, Order::Oldest), ["aaa1", "aab2"]);
    let filter = |change: fn(&mut Filter)| {
        let mut filter = Filter::default();
        change(&mut filter);
        ids(&catalogue, &filter, Order::Newest)
    };
    assert_eq!(filter(|f| f.agents = vec!["claude".to_owned()]), ["aaa1"]);
    assert_eq!(filter(|f| f.project = Some("tower".to_owned())), ["aaa1"]);
    assert_eq!(filter(|f| f.branch = Some("dev".to_owned())), ["aab2"]);
    assert_eq!(filter(|f| f.model = Some("GPT".to_owned())), ["aab2"]);
    assert_eq!(filter(|f| f.title = Some("aaa".to_owned())), ["aaa1"]);
    assert_eq!(filter(|f| f.since = Some(3_000)), ["aab2"]);
    assert_eq!(filter(|f| f.until = Some(3_000)), ["aaa1"]);
    assert_eq!(filter(|f| f.subagents = true).len(), 3);
    assert!(filter(|f| f.agents = vec!["'; drop table source".to_owned()]).is_empty());
    let sums = catalogue.by_agent(&Filter::default()).unwrap();
    assert_eq!(sums.len(), 2);
    assert_eq!(sums[0].usage.input, Some(10));
}

#[test]
fn pages_follow_each_other_in_every_order() {
    let catalogue = SqliteCatalogue::in_memory().unwrap();
    for n in 0..12_i64 {
        let id = format!("id{n:02}");
        // Some at the same time, and some without one.
        let read = reading(&id, |reading| {
            let at = (n % 4 != 3).then(|| 1_000 * (n / 3));
            (reading.summary.first_at, reading.summary.last_at) = (at, at);
        });
        catalogue.put(&read).unwrap();
    }
    let orders = [
        Order::Newest,
        Order::Oldest,
        Order::Tokens,
        Order::Size,
        Order::Events,
    ];
    for order in orders {
        let whole = ids(&catalogue, &Filter::default(), order);
        assert_eq!(whole.len(), 12);
        let (mut paged, mut filter) = (Vec::new(), Filter::default());
        loop {
            let rows = catalogue.list(&filter, order, Some(5)).unwrap();
            let Some(last) = rows.last() else { break };
            filter.after = Some(After::of(order, last));
            paged.extend(rows.iter().map(|row| row.run_id.clone()));
        }
        assert_eq!(paged, whole, "{order:?}");
    }
}

#[test]
fn models_without_tokens_are_listed_and_found() {
    let catalogue = SqliteCatalogue::in_memory().unwrap();
    let named = reading("aaa1", |reading| {
        reading.summary.spend.clear();
        reading.summary.models = ["silent-1".to_owned(), "silent-2".to_owned()].into();
    });
    catalogue.put(&named).unwrap();
    assert_eq!(
        catalogue.find("aaa1").unwrap().models,
        ["silent-1", "silent-2"]
    );
    let filter = Filter {
        model: Some("SILENT".to_owned()),
        ..Filter::default()
    };
    assert_eq!(ids(&catalogue, &filter, Order::Newest), ["aaa1"]);
}

#[test]
fn a_sub_agent_without_its_parent_is_listed() {
    let catalogue = three();
    let orphan = |id: &str, parent: &str| {
        let parent = Some(parent.to_owned());
        reading(id, |reading| {
            reading.session.parent.clone_from(&parent);
            reading.summary.last_at = Some(100);
        })
    };
    catalogue.put(&orphan("lost", "nowhere")).unwrap();
    // Its own parent, by a lie of its log.
    catalogue.put(&orphan("self", "self")).unwrap();
    let all = Filter::default();
    let newest = ids(&catalogue, &all, Order::Newest);
    assert_eq!(newest, ["aab2", "aaa1", "lost", "self"]);
    // Once the parent is there, it has its place below it.
    catalogue.put(&orphan("nowhere", "aaa1")).unwrap();
    let newest = ids(&catalogue, &all, Order::Newest);
    assert_eq!(newest, ["aab2", "aaa1", "self"]);
}

#[test]
fn a_sub_agent_is_linked_to_the_call_that_its_parent_names() {
    let catalogue = three();
    assert_eq!(catalogue.find("child").unwrap().parent_call, None);
    let parent = reading("aaa1", |reading| {
        let spawned = &mut reading.summary.spawned;
        spawned.insert("child".to_owned(), "call_7".to_owned());
        spawned.insert("aab2".to_owned(), "call_8".to_owned());
    });
    catalogue.put(&parent).unwrap();
    let call = |id: &str| catalogue.find(id).unwrap().parent_call;
    assert_eq!(call("child").as_deref(), Some("call_7"));
    assert_eq!(call("aab2"), None, "it says itself that it has no parent");
}

#[test]
fn the_beginning_of_an_id_is_enough_if_it_is_the_only_one() {
    let catalogue = three();
    assert_eq!(catalogue.find("aab").unwrap().run_id, "aab2");
    assert!(matches!(catalogue.find("aa"), Err(NotFound::Several(_, names)) if names.len() == 2));
    assert!(matches!(catalogue.find("x"), Err(NotFound::None(_))));
    assert!(matches!(catalogue.find("a%"), Err(NotFound::None(_))));
    assert_eq!(catalogue.children("aaa1").unwrap()[0].run_id, "child");
}

#[test]
fn forgetting_a_source_forgets_all_of_it() {
    let catalogue = three();
    catalogue.forget(&format!("{:0>64}", "aaa1")).unwrap();
    assert!(catalogue.find("aaa1").is_err());
    for table in ["transcript", "spend", "tool_use"] {
        let query = format!("select count(*) from {table}");
        let left: i64 = catalogue
            .database
            .lock()
            .query_row(&query, [], |row| row.get(0))
            .unwrap();
        assert_eq!(left, 2, "{table}");
    }
}

#[test]
fn a_newer_catalogue_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    drop(SqliteCatalogue::open(&path).unwrap());
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let refused = SqliteCatalogue::open(&path).unwrap_err();
    assert!(refused.to_string().contains("version 99"), "{refused}");
}

#[test]
fn what_is_no_catalogue_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    let mut file = std::fs::File::create(&path).unwrap();
    std::io::Write::write_all(&mut file, &[0x5a; 4096]).unwrap();
    let refused = SqliteCatalogue::open(&path).unwrap_err();
    assert!(refused.to_string().contains("index.sqlite"), "{refused}");
}

/// A store as each released version left it opens, is brought up to date, and shows what it held.
#[test]
fn stores_of_every_version_open() {
    let releases = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/stores");
    let mut opened = 0;
    for entry in std::fs::read_dir(releases).unwrap() {
        let release = entry.unwrap().path();
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        copy(&release, &home);
        let store = crate::Store::open(&home).unwrap();
        let rows = store
            .catalogue()
            .list(&Filter::default(), Order::Oldest, None)
            .unwrap();
        assert!(!rows.is_empty(), "{}", release.display());
        let sources = || format!("{:?}", store.catalogue().sources().unwrap());
        let before = sources();
        for row in &rows {
            // What is known of it has an address at once, and the id that it had still means it.
            let ids = [&row.address, &row.run_id].map(|id| store.catalogue().find(id).unwrap().id);
            assert_eq!(ids, [row.id, row.id]);
            assert_eq!(row.address.len(), 8 + 1 + 16);
        }
        let other = crate::Store::open(&home).unwrap();
        for row in &rows {
            assert_eq!(
                other.catalogue().find(&row.run_id).unwrap().address,
                row.address
            );
        }
        assert_eq!(sources(), before, "no log was read again");
        for row in rows {
            let (events, notes) = (row.figures.events, row.figures.notes);
            let transcript = store.read(row).unwrap();
            assert_eq!(transcript.events.len() as u64, events + notes);
        }
        opened += 1;
    }
    assert!(opened > 0);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn a_catalogue_that_may_not_be_written_to_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("odd % name.sqlite");
    let catalogue = SqliteCatalogue::open(&path).unwrap();
    catalogue.put(&reading("aaa1", |_| {})).unwrap();
    drop(catalogue);
    let catalogue = SqliteCatalogue::open_read_only(&path).unwrap();
    assert_eq!(catalogue.find("aaa1").unwrap().run_id, "aaa1");
    assert!(catalogue.put(&reading("aaa2", |_| {})).is_err());
}

/// A home may have rows from before numbers were bounded; it has to open all the same.
#[test]
fn sums_hold_whatever_is_in_the_rows() {
    let catalogue = three();
    let database = catalogue.database.lock();
    let columns = |table: &str| -> Vec<String> {
        let mut statement = database
            .prepare("select name from pragma_table_info(?1) where lower(type) = 'integer'")
            .unwrap();
        let names = statement.query_map([table], |row| row.get(0)).unwrap();
        names.collect::<rusqlite::Result<_>>().unwrap()
    };
    let keys = [
        "id",
        "source",
        "transcript",
        "copy_of",
        "duplicate",
        "version",
        "adapters",
    ];
    for number in [i64::MAX, 1 << 62, i64::MIN, -1] {
        for table in ["transcript", "source", "spend", "activity", "tool_use"] {
            for column in columns(table) {
                if keys.contains(&column.as_str()) {
                    continue;
                }
                let set = format!("update {table} set {column} = ?1");
                // Some columns are only true or false.
                drop(database.execute(&set, [number]));
            }
        }
        database
            .execute_batch(&format!(
                "insert or replace into dropped select id, 'empty', {number} from source;
                 insert or replace into drift select id, 'field:x', {number}, 0, 1 from source;"
            ))
            .unwrap();
        let all = Filter {
            subagents: true,
            duplicates: true,
            ..Filter::default()
        };
        let sums = catalogue.by_agent(&all).unwrap();
        assert_eq!(sums.iter().map(|sum| sum.transcripts).sum::<u64>(), 3);
        let two = sums.iter().find(|sum| sum.transcripts == 2).unwrap();
        let exact = u64::try_from(i128::from(number) * 2).unwrap_or(0);
        assert_eq!(two.usage.input, Some(exact));
        assert_eq!(catalogue.dropped().unwrap().len(), 1);
        assert_eq!(catalogue.drift().unwrap().len(), 2);
        for order in [Order::Newest, Order::Tokens, Order::Size, Order::Events] {
            assert_eq!(catalogue.list(&all, order, None).unwrap().len(), 3);
        }
    }
}

#[test]
fn what_is_changed_by_nobody_is_noticed() {
    let catalogue = three();
    catalogue.seal().unwrap();
    assert_eq!(catalogue.damages(true), Vec::<String>::new());
    // What is put down anew is not damage.
    catalogue
        .put(&reading("aaa1", |reading| reading.summary.prompts = 7))
        .unwrap();
    assert_eq!(catalogue.damages(true), Vec::<String>::new());
    catalogue.seal().unwrap();
    let database = catalogue.database.lock();
    let triggers = "select group_concat('drop trigger ' || name, ';') from sqlite_schema where type = 'trigger'";
    let drop: String = database.query_row(triggers, [], |row| row.get(0)).unwrap();
    database.execute_batch(&drop).unwrap();
    for (change, back) in [
        (
            "update transcript set title = 'about aaaq' where run_id = 'aaa1'",
            "update transcript set title = 'about aaa1' where run_id = 'aaa1'",
        ),
        (
            "update spend set input = 11 where input = 10",
            "update spend set input = 10",
        ),
        (
            "update source set read_to = 101",
            "update source set read_to = 100",
        ),
    ] {
        database.execute_batch(change).unwrap();
        let damages = catalogue.damages(false);
        assert!(
            damages.iter().any(|it| it.contains("/logs/aaa1.jsonl")),
            "{change}: {damages:?}"
        );
        database.execute_batch(back).unwrap();
        assert_eq!(catalogue.damages(false), Vec::<String>::new(), "{back}");
    }
}
