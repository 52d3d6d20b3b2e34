use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

use super::{McpError, connect};
use crate::definition::McpServer;
use crate::http::tests::{answer, serving};
use crate::tools::builtin::{Builtins, Options};
use crate::tools::serve::serve;
use crate::tools::tests::{Told, request};
use crate::tools::{Router, Rules, ToolOutcome, Toolbox};

/// A server in a shell script: of the older generation, or with `$1` = `new` of the newer one.
pub(crate) const SERVER: &str = r#"
say() { printf '%s\n' "$1"; }
tools='{"tools":[{"name":"echo","description":"Says it again","inputSchema":{"type":"object"}},{"name":"do it!","inputSchema":{"type":"object"}},{"name":"do-it?","inputSchema":{"type":"object"}},{"name":"do it?","inputSchema":{"type":"object"}}]}'
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"server/discover"'*) if [ "$1" = new ]; then
        say '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"private","capabilities":{"tools":{}}}}'
      else say '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"unknown"}}'; fi;;
    *'"initialize"'*) if [ "$1" = new ]; then exit 9; fi
      say '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}}';;
    *'"tools/list"'*) if [ "$1" = new ]; then say '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","tools":'"${tools#*:}"'}'
      else say '{"jsonrpc":"2.0","id":'$id',"result":'"$tools"'}'; fi;;
    *'"crash"'*) echo 'out of cheese' >&2; exit 3;;
    *'"hang"'*) sleep 64;;
    *'"garbage"'*) echo 'Loading model... 100%'; say '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"after"}]}}';;
    *'"huge"'*) head -c 100000000 /dev/zero | tr '\0' x; echo;;
    *'"bad"'*) say '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"it went wrong"}],"isError":true}}';;
    *'"structured"'*) say '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"{}"}],"structuredContent":{"n":1}}}';;
    *'"refuse"'*) say '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32602,"message":"not like that"}}';;
    *'"tools/call"'*) say '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"hello"}]}}';;
  esac
done
"#;

fn program(argv: &[&str]) -> McpServer {
    McpServer {
        command: argv.iter().map(|it| (*it).to_owned()).collect(),
        ..McpServer::default()
    }
}

fn fake(generation: &str) -> McpServer {
    program(&["/bin/sh", "-c", SERVER, "fake", generation])
}

async fn connected(server: &McpServer) -> Arc<dyn Toolbox> {
    let never = CancellationToken::new();
    connect("srv", server, &never).await.unwrap()
}

async fn called(tools: &Arc<dyn Toolbox>, what: &str) -> ToolOutcome {
    let never = CancellationToken::new();
    let router = Router::new(vec![tools.clone()]);
    let call = request("srv_echo", json!({"text": what}));
    router.call(call, &Told::default(), &never).await
}

#[tokio::test]
async fn servers_of_both_generations_are_connected_to() {
    for generation in ["old", "new"] {
        let tools = connected(&fake(generation)).await;
        let names: Vec<_> = tools.tools().into_iter().map(|it| it.name).collect();
        assert_eq!(
            names,
            ["srv_echo", "srv_do_it_", "srv_do-it_", "srv_do_it__2"]
        );
        assert_eq!(tools.tools()[0].description, "Says it again");
        let outcome = called(&tools, "hi").await;
        assert_eq!(outcome, ToolOutcome::done("hello"), "{generation}");
    }
}

#[tokio::test]
async fn results_of_every_kind_reach_the_model() {
    let tools = connected(&fake("old")).await;
    let outcome = called(&tools, "bad").await;
    assert_eq!(outcome.error.as_deref(), Some("it went wrong"));
    let outcome = called(&tools, "structured").await;
    assert_eq!(outcome.output["structuredContent"], json!({"n": 1}));
    let outcome = called(&tools, "refuse").await;
    assert!(outcome.error.unwrap().contains("not like that (-32602)"));
    assert_eq!(called(&tools, "hi").await, ToolOutcome::done("hello"));
}

#[tokio::test]
async fn a_server_that_crashes_gives_errors_that_say_why_and_no_hang() {
    let tools = connected(&fake("old")).await;
    let began = Instant::now();
    for _ in 0..2 {
        let error = called(&tools, "crash").await.error.unwrap();
        assert!(error.contains("exit code 3"), "{error}");
        assert!(error.contains("out of cheese"), "{error}");
    }
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_server_that_prints_a_line_without_end_is_ended() {
    let tools = connected(&fake("old")).await;
    let error = called(&tools, "huge").await.error.unwrap();
    assert!(error.contains("a line of more than"), "{error}");
}

#[tokio::test]
async fn lines_that_are_not_messages_are_passed_over_and_told() {
    let tools = connected(&fake("old")).await;
    let router = Router::new(vec![tools]);
    let told = Told::default();
    let never = CancellationToken::new();
    let call = request("srv_echo", json!({"text": "garbage"}));
    let outcome = router.call(call, &told, &never).await;
    assert_eq!(outcome, ToolOutcome::done("after"));
    let noise = &told.all()[1];
    assert_eq!(noise.0, "tool_lifecycle/server_noise");
    assert_eq!(noise.1["first"], "Loading model... 100%");
}

#[tokio::test]
async fn a_server_that_hangs_ends_by_the_routers_timeout_and_with_its_toolbox() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let script = format!("echo $$ > {}\n{SERVER}", pid_file.display());
    let tools = connected(&program(&["/bin/sh", "-c", &script])).await;
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let rules = Rules {
        timeout: Duration::from_millis(100),
        ..Rules::default()
    };
    let router = Router::with_rules(vec![tools], rules);
    let told = Told::default();
    let never = CancellationToken::new();
    let call = request("srv_echo", json!({"text": "hang"}));
    let outcome = router.call(call, &told, &never).await;
    assert!(outcome.error.unwrap().contains("100ms"));
    drop(router);
    let began = Instant::now();
    loop {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        if state.is_err() || state.is_ok_and(|it| it.contains(") Z ")) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_begin_says_why() {
    let never = CancellationToken::new();
    for (server, part) in [
        (
            program(&["/bin/sh", "-c", "echo no licence >&2; exit 7"]),
            "exit code 7; it said: no licence",
        ),
        (program(&["/bin/sh", "-c", "echo Usage: x"]), "Usage: x"),
        (
            program(&["no-such-server-here"]),
            "no-such-server-here was not found",
        ),
        (McpServer::default(), "a command or a url"),
    ] {
        let error = connect("srv", &server, &never).await.err().unwrap();
        let text = error.to_string();
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn connecting_is_ended_by_cancelling() {
    let cancel = CancellationToken::new();
    let silent = program(&["/bin/sh", "-c", "sleep 65"]);
    let began = Instant::now();
    let (done, ()) = tokio::join!(connect("srv", &silent, &cancel), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    assert!(matches!(done.err(), Some(McpError::Cancelled)));
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// What a server over HTTP answers to a message.
fn web_answer(request: &str, newer: bool, stream: bool) -> Option<String> {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    if !head.starts_with("POST") {
        return answer("405 No", "", "");
    }
    let message: Value = serde_json::from_str(body).unwrap();
    let id = &message["id"];
    let (session, result) = match message["method"].as_str().unwrap() {
        "server/discover" if newer => (
            false,
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private", "capabilities": {"tools": {}}}),
        ),
        "server/discover" => return answer("400 Bad Request", "", "no session"),
        "initialize" => (
            true,
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}}),
        ),
        "tools/list" => (
            false,
            json!({"resultType": "complete", "ttlMs": 1, "cacheScope": "private", "tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        ),
        "tools/call" => {
            let text = &message["params"]["arguments"]["text"];
            if text == "down" {
                return answer("503 Busy", "", "");
            }
            (
                false,
                json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}),
            )
        }
        _ => return answer("202 Accepted", "", ""),
    };
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    let session = if session {
        "mcp-session-id: s-1\r\n"
    } else {
        ""
    };
    if stream {
        let headers = format!("content-type: text/event-stream\r\n{session}");
        answer("200 OK", &headers, &format!(": hello\n\ndata: {body}\n\n"))
    } else {
        let headers = format!("content-type: application/json\r\n{session}");
        answer("200 OK", &headers, &body)
    }
}

#[tokio::test]
async fn servers_over_http_are_reached_in_both_generations_and_forms() {
    for (newer, stream) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut web = serving(move |request| web_answer(request, newer, stream)).await;
        let server = McpServer {
            url: Some(format!("{}/mcp", web.url)),
            headers: BTreeMap::from([("Authorization".to_owned(), "Bearer t".to_owned())]),
            ..McpServer::default()
        };
        let tools = connected(&server).await;
        let outcome = called(&tools, "hi").await;
        assert_eq!(outcome, ToolOutcome::done("hi"), "{newer} {stream}");
        let error = called(&tools, "down").await.error.unwrap();
        assert!(error.contains("503"), "{error}");
        drop(tools);
        let mut seen = Vec::new();
        while let Ok(request) = web.seen.try_recv() {
            assert!(request.contains("authorization: Bearer t\r\n"), "{request}");
            seen.push(request);
        }
        let call = seen.iter().find(|it| it.contains("tools/call")).unwrap();
        let mark = if newer {
            "mcp-protocol-version: 2026-07-28\r\n"
        } else {
            "mcp-session-id: s-1\r\n"
        };
        assert!(call.contains(mark), "{call}");
    }
}

#[tokio::test]
async fn a_server_over_http_that_is_not_there_or_refuses_says_why() {
    let web = serving(|_| answer("401 No", "www-authenticate: Bearer\r\n", "")).await;
    let at = |url: &str| McpServer {
        url: Some(url.to_owned()),
        ..McpServer::default()
    };
    let never = CancellationToken::new();
    let error = connect("srv", &at(&web.url), &never).await.err().unwrap();
    assert!(error.to_string().contains("Auth required"), "{error}");
    let error = connect("srv", &at("http://127.0.0.1:1/x?key=secret"), &never).await;
    let error = error.err().unwrap().to_string();
    assert!(
        error.contains("refused") && !error.contains("secret"),
        "{error}"
    );
}

/// Quipu's server speaks with Quipu's client: what an agent sees of the router.
#[tokio::test]
async fn the_router_is_served_to_agents_and_records_their_calls() {
    let dir = tempfile::tempdir().unwrap();
    let tools = Builtins::new(dir.path(), Options::default()).unwrap();
    let told = Arc::new(Told::default());
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (from, to) = tokio::io::split(ours);
    let cancel = CancellationToken::new();
    let serving = {
        let (told, cancel) = (told.clone(), cancel.clone());
        let router = Router::new(vec![Arc::new(tools)]);
        tokio::spawn(async move { serve(router, told, from, to, &cancel).await })
    };
    let (mut hear, mut say) = tokio::io::split(theirs);
    let mut lines = Vec::new();
    let mut ask = async |message: Value, answered: bool| -> Value {
        say.write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
        if !answered {
            return Value::Null;
        }
        loop {
            if let Some(at) = lines.iter().position(|&b| b == b'\n') {
                let line: Vec<u8> = lines.drain(..=at).collect();
                return serde_json::from_slice(&line).unwrap();
            }
            let mut buffer = [0; 4096];
            let n = hear.read(&mut buffer).await.unwrap();
            assert!(n > 0, "the server is there");
            lines.extend_from_slice(&buffer[..n]);
        }
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}});
    let greeted = ask(hello, true).await;
    assert_eq!(greeted["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(greeted["result"]["serverInfo"]["name"], "quipu");
    ask(
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        false,
    )
    .await;
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let list = ask(list, true).await;
    let names: Vec<_> = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["Read", "Write", "Edit", "Bash", "Glob", "Grep"]);
    let call = |id: u32, name: &str, arguments: Value, meta: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": arguments, "_meta": meta}})
    };
    let write = json!({"path": "f", "content": "x"});
    let meta = json!({"claudecode/toolUseId": "toolu_1"});
    let done = ask(call(3, "Write", write, meta), true).await;
    assert_ne!(done["result"]["isError"], true, "{done}");
    let read = json!({"path": "../f"});
    let done = ask(call(4, "Read", read, json!({})), true).await;
    assert_eq!(done["result"]["isError"], true, "{done}");
    let done = ask(call(5, "Rad", json!({}), json!({})), true).await;
    let text = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("did you mean Read?"), "{text}");
    assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), b"x");
    let ids: Vec<_> = told
        .all()
        .into_iter()
        .filter(|it| it.0 == "call")
        .map(|it| it.1["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids[0], "toolu_1");
    assert!(
        ids[1].starts_with("mcp-") && ids[1].ends_with("-4"),
        "{ids:?}"
    );
    cancel.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(10), serving).await;
    ended.unwrap().unwrap().unwrap();
}
