//! The page in a real browser: every screen, by mouse and by keyboard, while things change under it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quipu_browser::{Chromium, Tab};
use serde_json::{Value, json};

use super::kit::{Answer, Server};
use crate::cli::env::TestEnv;

/// The screens that do not depend on a transcript.
const SCREENS: [&str; 7] = [
    "/",
    "/sessions",
    "/cost",
    "/tools",
    "/runs",
    "/search?q=the",
    "/shared",
];

/// How long another process may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The views of a transcript.
const VIEWS: [&str; 5] = ["", "/timeline", "/context", "/tools", "/cost"];

/// The samples, served.
fn samples(env: &TestEnv) -> Server {
    let args = ["up", "--demo", "--listen", "127.0.0.1:0"];
    let server = Server::of(env.start(&args), env.dir.path());
    let home = server.json("/api/v1/status")["home"].clone();
    Server {
        home: PathBuf::from(home.as_str().unwrap()),
        ..server
    }
}

fn url(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.address)
}

/// Goes to a screen, and waits until it is drawn.
fn go(tab: &mut Tab, server: &Server, path: &str) {
    // The page before may be at the same address.
    tab.get("delete document.querySelector('main').dataset.ready");
    tab.go(&url(server, path));
    ready(tab, path);
}

fn ready(tab: &mut Tab, path: &str) {
    let path = path.split('#').next().unwrap();
    tab.until(&format!(
        "document.querySelector('main').dataset.ready === {}",
        json!(path)
    ));
}

/// Opens a first page. The tab complains of nothing and asks nobody else.
fn visit(browser: &Chromium, server: &Server, path: &str) -> Tab {
    let mut tab = browser.visit(&url(server, path));
    ready(&mut tab, path);
    tab
}

#[track_caller]
fn is_quiet(tab: &mut Tab, what: &str) {
    assert_eq!(tab.console(), [""; 0], "{what}");
}

/// Ids of transcripts, of each agent one, with those that have the most events first.
fn of_each_agent(server: &Server) -> Vec<String> {
    let all = server.json("/api/v1/transcripts?limit=1000&all=true");
    let mut rows = all["transcripts"].as_array().unwrap().clone();
    rows.sort_by_key(|row| std::cmp::Reverse(row["events"].as_u64()));
    let mut agents = Vec::new();
    let mut ids = Vec::new();
    for row in rows {
        if !agents.contains(&row["agent"]) {
            agents.push(row["agent"].clone());
            ids.push(row["id"].as_str().unwrap().to_owned());
        }
    }
    ids
}

/// What every screen has to be, whatever it shows.
#[track_caller]
fn is_sound(tab: &mut Tab, path: &str) {
    is_quiet(tab, path);
    let found = tab.get(
        "({
           heading: document.querySelectorAll('main h1').length,
           failed: document.querySelector('main .failed')?.innerText ?? null,
           unnamed: [...document.querySelectorAll('main a[href], main button, main input, main select')]
             .filter((it) => it.checkVisibility() && !it.textContent.trim() && !it.getAttribute('aria-label') && !it.title && !it.labels?.length)
             .map((it) => it.outerHTML.slice(0, 200)),
           wide: document.documentElement.scrollWidth - innerWidth,
         })",
    );
    assert_eq!(found["heading"], 1, "{path}: {found}");
    assert_eq!(found["failed"], Value::Null, "{path}");
    assert_eq!(found["unnamed"], json!([]), "{path}");
    assert!(
        found["wide"].as_i64().unwrap() <= 0,
        "{path} is wider than its window by {} pixels",
        found["wide"]
    );
}

/// Every screen of a server, at three widths and in both colours.
fn every_screen(server: &Server, transcripts: &[String]) {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let mut paths: Vec<String> = SCREENS.iter().map(|&path| path.to_owned()).collect();
    for id in transcripts {
        paths.extend(VIEWS.iter().map(|view| format!("/t/{id}{view}")));
    }
    if let [first, second, ..] = transcripts {
        paths.push(format!("/compare?a={first}&b={second}"));
    }
    let mut tab = visit(&browser, server, "/");
    let axe = axe();
    for (n, path) in paths.iter().enumerate() {
        tab.look(1280, 900, n % 2 == 0);
        go(&mut tab, server, path);
        is_sound(&mut tab, path);
        for (width, dark) in [(360, true), (2200, false)] {
            tab.look(width, 900, dark);
            tab.get("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");
            is_sound(&mut tab, path);
        }
        if let Some(axe) = &axe {
            accessible(&mut tab, axe, path);
        }
    }
    assert_eq!(tab.requests(), [""; 0]);
}

/// axe-core, where `cargo xtask test` could install it.
fn axe() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join("target/page/node_modules/axe-core/axe.min.js");
    let text = std::fs::read_to_string(file).ok();
    if text.is_none() {
        eprintln!(
            "SKIPPED: axe-core is not installed; `cargo xtask test` installs it where there is npm"
        );
    }
    text
}

#[track_caller]
fn accessible(tab: &mut Tab, axe: &str, path: &str) {
    tab.get(&format!("{axe}; true"));
    for dark in [false, true] {
        tab.look(1280, 900, dark);
        let found = tab.get(
            "axe.run(document, { resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })
               .then((it) => it.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`))",
        );
        assert_eq!(found, json!([]), "{path}, dark: {dark}");
    }
}

#[test]
fn every_screen_of_the_samples_is_drawn() {
    let env = TestEnv::new();
    let server = samples(&env);
    let ids = of_each_agent(&server);
    assert!(ids.len() >= 4);
    every_screen(&server, &ids);
}

#[test]
fn every_screen_of_real_logs_is_drawn() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    if !fixtures.is_dir() {
        eprintln!("SKIPPED: ../shared/fixtures is not there");
        return;
    }
    let env = TestEnv::new();
    let ran = env.run(&["import", &fixtures.display().to_string()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let server = Server::serve(&env, &[]);
    let ids = of_each_agent(&server);
    assert!(ids.len() >= 15, "{}", ids.len());
    every_screen(&server, &ids[..8]);
}

#[test]
fn an_empty_home_has_screens_that_say_so() {
    let env = TestEnv::new();
    let server = Server::serve(&env, &[]);
    every_screen(&server, &[]);
}

/// From the list to an event and back, without a mouse.
#[test]
fn a_keyboard_is_enough() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let env = TestEnv::new();
    let server = samples(&env);
    let mut tab = visit(&browser, &server, "/");
    tab.press("g");
    tab.press("s");
    ready(&mut tab, "/sessions");
    tab.press("/");
    tab.until("document.activeElement.id === 'ask'");
    tab.write("flaky");
    tab.press("Enter");
    tab.until("location.pathname === '/search' && document.querySelector('main a[href^=\"/t/\"]')");
    tab.press("Escape");
    tab.press("?");
    tab.until("document.getElementById('keys').open");
    tab.press("Escape");
    tab.until("!document.getElementById('keys').open");
    go(&mut tab, &server, "/t/5d2c1f0e");
    tab.press("j");
    tab.until("document.querySelector('.ev.is-current')");
    let first = tab.text("document.querySelector('.ev.is-current').id");
    tab.press("j");
    tab.until(&format!(
        "document.querySelector('.ev.is-current').id !== {}",
        json!(first)
    ));
    tab.press("x");
    tab.until("document.querySelector('.ev.is-current.is-error')");
    tab.press("r");
    tab.until("document.querySelector('dialog.raw[open] pre')?.textContent.includes('\"seq\"')");
    is_quiet(&mut tab, "keys");
}

/// Folds are looked into as well.
#[test]
fn a_transcript_is_searched_with_its_folds() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let env = TestEnv::new();
    let server = samples(&env);
    let mut tab = visit(&browser, &server, "/t/5d2c1f0e");
    tab.press("f");
    tab.until("document.activeElement.id === 'find'");
    tab.write("gives_up");
    tab.press("Enter");
    tab.until("/^1\\/\\d+$/.test(document.getElementById('found').textContent)");
    tab.until("document.querySelector('.is-current-match')");
    is_quiet(&mut tab, "search");
}

/// A label of a person is there after a reload, and is kept by the server.
#[test]
fn labels_are_kept() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let env = TestEnv::new();
    let server = samples(&env);
    let mut tab = visit(&browser, &server, "/t/5d2c1f0e");
    tab.click("[data-uiid=label-add]");
    tab.until("document.activeElement.dataset.uiid === 'words'");
    tab.write("keep");
    tab.press("Enter");
    tab.until("[...document.querySelectorAll('.label-chip')].some((it) => it.textContent.startsWith('keep'))");
    go(&mut tab, &server, "/t/5d2c1f0e");
    tab.until("document.querySelector('.label-chip')?.textContent.startsWith('keep')");
    let kept = server.json("/api/v1/transcripts/5d2c1f0e/annotations");
    assert_eq!(kept["labels"][0]["label"], "keep");
    is_quiet(&mut tab, "labels");
}

/// A run that is recorded by another process shows up event by event, and what was unfolded stays unfolded.
#[test]
fn a_run_grows_while_it_is_read() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let env = TestEnv::new();
    let server = Server::serve(&env, &[]);
    let mut recorder = env.start(&["emit", "--run", "growing"]);
    let say = |text: &str| {
        let block = json!({"type": "text", "fidelity": "agent_emitted", "text": text});
        let payload = json!({"role": "assistant", "blocks": [block]});
        json!({"type": "message.assistant", "path": "talk", "payload": payload}).to_string()
    };
    let call = json!({"type": "tool.call", "path": "talk", "payload": {"name": "Bash", "call_id": "c1", "input": {"command": "ls"}, "fidelity": "router"}});
    recorder.send(&say("the first thing"));
    recorder.send(&call.to_string());
    let begun = Instant::now();
    let is_there = |answer: Answer| answer.status == 200 && answer.json()["total"] == 2;
    while !is_there(server.get("/api/v1/transcripts/growing/events")) {
        assert!(begun.elapsed() < PATIENCE, "the run never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut tab = visit(&browser, &server, "/t/growing");
    tab.until("document.querySelectorAll('.ev').length === 2");
    tab.get("document.querySelector('.ev.tool details.fold').unfold()");
    recorder.send(&say("the second thing"));
    tab.until("document.body.textContent.includes('the second thing')");
    assert_eq!(
        tab.get("document.querySelector('.ev.tool details.fold').open"),
        json!(true)
    );
    let result = json!({"type": "tool.result", "path": "talk", "payload": {"name": "Bash", "call_id": "c1", "output": "README.md", "fidelity": "router"}});
    recorder.send(&result.to_string());
    tab.until("document.querySelector('.ev.tool .status.ok')");
    assert_eq!(tab.get("document.querySelectorAll('.ev').length"), json!(3));
    recorder.finish();
    is_quiet(&mut tab, "growing");
}

/// The page says that its server is gone, and goes on by itself when it is back.
#[test]
fn a_server_that_comes_back_is_noticed() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let env = TestEnv::new();
    let server = Server::serve(&env, &[]);
    let mut tab = visit(&browser, &server, "/sessions");
    tab.until("document.getElementById('live-mark').classList.contains('is-live')");
    let address = server.address.to_string();
    drop(server);
    tab.until("!document.getElementById('banner').hidden");
    let again = env.start(&["serve", "--listen", &address]);
    let again = Server::of(again, env.dir.path());
    tab.until("document.getElementById('banner').hidden");
    drop(again);
}

/// Text that tries everything is text on every screen.
#[test]
fn hostile_text_is_text_on_every_screen() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let env = TestEnv::new();
    let evil = "<img src=x onerror=\"document.documentElement.dataset.pwned=1\"><script>document.documentElement.dataset.pwned=1</script>javascript:alert(1)\u{202e}\u{1b}[31m'\"`${1}{{1}}";
    let block = json!({"type": "text", "fidelity": "agent_emitted", "text": format!("{evil} [link](javascript:alert(1)) ![x](http://evil.invalid/x.png)")});
    let step = json!({"name": evil, "kind": evil});
    let lines = [
        json!({"type": "run.started", "path": "", "payload": {"name": evil, "kind": "workflow"}}),
        json!({"type": "step.started", "path": evil, "payload": step}),
        json!({"type": "message.user", "path": evil, "payload": {"role": "user", "blocks": [block]}}),
        json!({"type": "message.assistant", "path": evil, "payload": {"role": "assistant", "blocks": [block]}}),
        json!({"type": "tool.call", "path": evil, "payload": {"name": evil, "call_id": "c", "input": {evil: evil}, "fidelity": "router"}}),
        json!({"type": "tool.result", "path": evil, "payload": {"name": evil, "call_id": "c", "output": {evil: evil}, "error": evil, "fidelity": "router"}}),
        json!({"type": "step.completed", "path": evil, "payload": {"name": evil, "kind": evil, "error": evil}}),
        json!({"type": "run.completed", "path": "", "payload": {"name": evil, "kind": "workflow", "error": evil}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = env.run_with(&["emit", "--run", "hostile"], text);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let server = Server::serve(&env, &[]);
    let mut tab = visit(&browser, &server, "/");
    let views = VIEWS.iter().map(|view| format!("/t/hostile{view}"));
    let screens = SCREENS.iter().map(|&path| path.to_owned());
    let others = [
        "/search?q=alert".to_owned(),
        "/runs/hostile".to_owned(),
        "/compare?a=hostile&b=hostile".to_owned(),
        "/t/%3Cscript%3E".to_owned(),
    ];
    for path in screens.chain(views).chain(others) {
        go(&mut tab, &server, &path);
        let marked = tab.get("document.documentElement.dataset.pwned ?? null");
        assert_eq!(marked, Value::Null, "{path}");
        let odd = tab.get(
            "[...document.querySelectorAll('script:not([type=module]), iframe, object, embed, [onerror], a[href^=javascript]')].length",
        );
        assert_eq!(odd, json!(0), "{path}");
    }
    tab.settle();
    assert_eq!(tab.requests(), [""; 0]);
}

/// How many events the long transcript has, and every how many-th tool call of it fails.
const LONG: usize = 100_000;
const FAILS: usize = 500;

/// A session of Claude Code with [`LONG`] events: a prompt, an answer, a call and its result, again and again.
fn long_log(id: &str) -> String {
    use std::fmt::Write as _;
    let mut log = String::with_capacity(LONG * 420);
    let mut parent = "null".to_owned();
    for n in 0..LONG {
        let (turn, uuid) = (n / 4, format!("00000000-0000-4000-8000-{n:012x}"));
        let answer = |block: String| {
            format!(
                r#"{{"model":"claude-sonnet-4-5-20250929","id":"msg_{turn}","type":"message","role":"assistant","content":[{block}],"usage":{{"input_tokens":1,"output_tokens":1}}}}"#
            )
        };
        let said = if turn == 12_345 {
            "a needle in it"
        } else {
            "it goes on"
        };
        let (kind, message) = match n % 4 {
            0 => (
                "user",
                format!(r#"{{"role":"user","content":"Prompt {turn}"}}"#),
            ),
            1 => (
                "assistant",
                answer(format!(
                    r#"{{"type":"text","text":"Answer {turn}: {said}."}}"#
                )),
            ),
            2 => (
                "assistant",
                answer(format!(
                    r#"{{"type":"tool_use","id":"toolu_{turn}","name":"Bash","input":{{"command":"ls {turn}"}}}}"#
                )),
            ),
            _ => (
                "user",
                format!(
                    r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{turn}","content":"done","is_error":{}}}]}}"#,
                    turn % FAILS == FAILS - 1
                ),
            ),
        };
        let (minute, second) = (n / 60 % 60, n % 60);
        let (day, hour) = (1 + n / 86_400, n / 3_600 % 24);
        writeln!(
            log,
            r#"{{"parentUuid":{parent},"isSidechain":false,"cwd":"/code/p","sessionId":"{id}","version":"2.1.200","type":"{kind}","message":{message},"uuid":"{uuid}","timestamp":"2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z"}}"#
        )
        .unwrap();
        parent = format!("\"{uuid}\"");
    }
    log
}

/// Whether an entry is on the screen.
fn on_screen(seq: usize) -> String {
    format!(
        "(() => {{ const box = document.getElementById('ev-{seq}').getBoundingClientRect(); return box.bottom > 0 && box.top < innerHeight; }})()"
    )
}

/// Only what is near the screen is drawn.
#[track_caller]
fn is_bounded(tab: &mut Tab) {
    let drawn = tab.get("document.querySelectorAll('.ev').length");
    assert!(
        drawn.as_u64().unwrap() <= 1_500,
        "{drawn} entries are drawn"
    );
}

/// A very long transcript opens at its end, is scrolled, searched and filtered, in pieces.
#[test]
fn a_transcript_of_a_hundred_thousand_events_is_read_in_pieces() {
    let Some(browser) = Chromium::find() else {
        return;
    };
    let env = TestEnv::new();
    let id = "00000000-1111-4222-8333-444444444444";
    let folder = env.dir.path().join("logs/.claude/projects/-code-p");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{id}.jsonl"));
    std::fs::write(&file, long_log(id)).unwrap();
    let ran = env.run(&["import", &file.display().to_string()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let server = Server::serve(&env, &[]);
    let page = server.json(&format!("/api/v1/transcripts/{id}/events?limit=1"));
    assert_eq!(page["total"], json!(LONG));
    // By a link to the last call, whose result is the last event.
    let last = LONG - 1;
    let mut tab = visit(&browser, &server, &format!("/t/{id}#ev-{last}"));
    tab.until(&on_screen(last));
    assert_eq!(
        tab.get("[...document.querySelectorAll('.ev')].pop().id"),
        json!(format!("ev-{last}"))
    );
    is_bounded(&mut tab);
    // As a person does: the page may still be busy with going to the end.
    tab.press("Home");
    tab.until(&on_screen(1));
    // Faster than anybody reads, and then slower.
    for (frames, step) in [(100, 4_000), (60, 200)] {
        tab.get(&format!(
            "new Promise((done) => {{
               let left = {frames};
               const step = () => {{
                 scrollBy({{ top: {step}, behavior: 'instant' }});
                 left -= 1;
                 if (left > 0) requestAnimationFrame(step);
                 else done(true);
               }};
               step();
             }})"
        ));
        tab.until("document.elementFromPoint(innerWidth / 2, innerHeight / 2).closest('.ev')");
        is_bounded(&mut tab);
    }
    tab.press("f");
    tab.until("document.activeElement.id === 'find'");
    tab.write("needle");
    tab.press("Enter");
    tab.until("document.getElementById('found').textContent === '1/1'");
    let found = 12_345 * 4 + 2;
    tab.until(&on_screen(found));
    tab.until(&format!(
        "document.querySelector('#ev-{found} .body').innerText.includes('needle')"
    ));
    is_bounded(&mut tab);
    tab.press("Escape");
    tab.get("document.querySelector('.only-errors').click()");
    let failed = LONG / 4 / FAILS;
    tab.until(&format!(
        "document.querySelector('.only-errors .n').textContent === '{failed}'"
    ));
    tab.until("(() => { const all = [...document.querySelectorAll('.ev')]; return all.length > 0 && all.every((it) => it.matches('.tool.is-error')); })()");
    is_quiet(&mut tab, "long");
}
