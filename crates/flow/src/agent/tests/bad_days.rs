//! Agents that misbehave.

use std::time::{Duration, Instant};

use quipu_model::{Body, Content};
use tokio_util::sync::CancellationToken;

use super::{Calls, Ear, Fake};
use crate::agent::AskFailure;

const SAID: &str = r#"{"type":"system","subtype":"init","session_id":"s1","cwd":"/w","model":"m","tools":[]}
{"type":"assistant","message":{"id":"msg_1","model":"m","role":"assistant","content":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}],"usage":{"input_tokens":3,"output_tokens":1}},"session_id":"s1"}"#;

fn says(then: &str) -> Fake {
    Fake::new(&format!("cat <<'END'\n{SAID}\nEND\n{then}"))
}

#[tokio::test]
async fn an_agent_that_fails_in_the_middle_leaves_what_it_said_and_the_call_it_made() {
    let fake = says("echo 'cannot go on' >&2; exit 1");
    let (answer, ear) = fake.ask(&fake.request("claude")).await;
    let error = answer.unwrap_err();
    assert_eq!(
        error.to_string(),
        "agent ended with exit code 1: cannot go on"
    );
    assert_eq!(error.heard.output, "Let me look.");
    assert_eq!(error.heard.exit_code, Some(1));
    assert_eq!(error.heard.usage.unwrap().input, Some(3));
    assert_eq!(error.heard.session.unwrap().id.as_deref(), Some("s1"));
    assert_eq!(ear.errors, b"cannot go on\n");
    assert_eq!(
        ear.lines(),
        [
            "note session",
            "text Let me look.",
            "call Read toolu_1",
            "harness tool_lifecycle.no_result",
            "harness stream_interrupt.exited",
        ]
    );
}

#[tokio::test]
async fn an_agent_that_hangs_and_ignores_the_request_to_end_is_ended() {
    let fake = says("trap '' TERM; sleep 60; sleep 60");
    let mut request = fake.request("claude");
    request.timeout = Some(Duration::from_millis(500));
    let began = Instant::now();
    let (answer, ear) = fake.ask(&request).await;
    let error = answer.unwrap_err();
    assert!(matches!(error.why, AskFailure::TimedOut(_)), "{error}");
    assert_eq!(error.heard.output, "Let me look.");
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(
        ear.met("stream_interrupt", "timed_out"),
        "{:?}",
        ear.lines()
    );
}

#[tokio::test]
async fn an_agent_that_is_cancelled_leaves_what_it_said() {
    let fake = says("sleep 60");
    let (request, agents) = (fake.request("claude"), fake.agents("claude"));
    let (mut ear, calls, cancel) = (Ear::default(), Calls::default(), CancellationToken::new());
    let (answer, ()) = tokio::join!(agents.ask(&request, &mut ear, &calls, &cancel), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        cancel.cancel();
    });
    let error = answer.unwrap_err();
    assert!(matches!(error.why, AskFailure::Cancelled), "{error}");
    assert_eq!(error.heard.output, "Let me look.");
    assert!(
        ear.met("stream_interrupt", "cancelled"),
        "{:?}",
        ear.lines()
    );
}

#[tokio::test]
async fn an_agent_that_kills_itself_is_told_from_one_that_fails() {
    let fake = says("kill -9 $$");
    let (answer, ear) = fake.ask(&fake.request("claude")).await;
    let error = answer.unwrap_err();
    assert!(
        matches!(error.why, AskFailure::Exit { code: 137, .. }),
        "{error}"
    );
    assert!(ear.met("stream_interrupt", "killed"), "{:?}", ear.lines());
}

#[tokio::test]
async fn an_agent_that_prints_nothing_answers_nothing_and_that_is_said() {
    let fake = Fake::new("exit 0");
    let (answer, ear) = fake.ask(&fake.request("codex")).await;
    assert_eq!(answer.unwrap().output, "");
    assert_eq!(ear.lines(), ["harness stream_interrupt.no_output"]);
}

#[tokio::test]
async fn plain_text_is_the_answer() {
    for provider in [
        "claude",
        "codex",
        "gemini",
        "github_copilot",
        "opencode",
        "mistral_vibe",
    ] {
        let fake = Fake::new("printf 'It says\\n\\none.\\n'");
        let (answer, ear) = fake.ask(&fake.request(provider)).await;
        assert_eq!(answer.unwrap().output, "It says\n\none.", "{provider}");
        assert_eq!(ear.lines(), ["text It says\n\none."], "{provider}");
    }
    // A JSON answer on one line is not a record of a stream.
    let fake = Fake::new(r#"printf '{"type":"bug","severity":3}\n'"#);
    let (answer, ear) = fake.ask(&fake.request("gemini")).await;
    assert_eq!(answer.unwrap().output, r#"{"type":"bug","severity":3}"#);
    assert_eq!(ear.blocks(), ["text"]);
}

#[tokio::test]
async fn lines_that_are_not_json_become_notes_that_keep_them_and_do_not_fail_the_step() {
    let long = "x".repeat(2000);
    let result =
        r#"{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s1"}"#;
    let stream = format!("Loading.\n{SAID}\n{{\"type\":\"assistant\", oh no {long}\n{result}\n");
    let fake = Fake::printing(stream.as_bytes());
    let (answer, ear) = fake.ask(&fake.request("claude")).await;
    assert_eq!(answer.unwrap().output, "ok");
    let notes: Vec<String> = ear
        .events
        .iter()
        .filter_map(|(body, _)| match body {
            Body::Note(note) if note.kind == quipu_model::NoteKind::MalformedLine => {
                Some(note.raw.as_ref()?.as_str()?.into_owned())
            }
            _ => None,
        })
        .collect();
    assert_eq!(notes.len(), 2, "{:?}", ear.lines());
    assert_eq!(notes[0], "Loading.");
    assert!(notes[1].ends_with(&long), "all of the line is kept");
}

#[tokio::test]
async fn raw_zeros_inside_a_line_do_not_lose_the_line() {
    let streams: [(&str, &[u8]); 4] = [
        (
            "claude",
            b"{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"model\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a\0b\"}]},\"session_id\":\"s\"}\n",
        ),
        (
            "codex",
            b"{\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"agent_message\",\"text\":\"a\0b\"}}\n",
        ),
        (
            "gemini",
            b"{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"a\0b\"}\n",
        ),
        (
            "github_copilot",
            b"{\"type\":\"assistant.message\",\"data\":{\"messageId\":\"m1\",\"content\":\"a\0b\"},\"id\":\"e1\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"parentId\":null}\n",
        ),
    ];
    for (provider, stream) in streams {
        let fake = Fake::printing(stream);
        let (answer, ear) = fake.ask(&fake.request(provider)).await;
        assert_eq!(
            answer.unwrap().output,
            "a\0b",
            "{provider}: {:?}",
            ear.lines()
        );
    }
}

#[tokio::test]
async fn half_a_line_at_the_end_is_kept() {
    let fake = Fake::printing(format!("{SAID}\n{{\"type\":\"assistant\",\"mess").as_bytes());
    let (answer, ear) = fake.ask(&fake.request("claude")).await;
    assert_eq!(answer.unwrap().output, "Let me look.");
    let kept = ear.events.iter().any(|(body, _)| {
        matches!(body, Body::Note(note) if note.raw.as_ref().is_some_and(|raw| {
            raw.as_str().as_deref() == Some("{\"type\":\"assistant\",\"mess")
        }))
    });
    assert!(kept, "{:?}", ear.lines());
    // A last line that only lacks its end is a record.
    let fake = Fake::printing(SAID.as_bytes());
    let (answer, _) = fake.ask(&fake.request("claude")).await;
    assert_eq!(answer.unwrap().output, "Let me look.");
}

#[tokio::test]
async fn an_agent_that_ends_before_it_has_read_its_input_is_heard() {
    let fake = says("exit 0");
    let mut request = fake.request("claude");
    request.prompt = "x".repeat(3 << 20);
    let (answer, ear) = fake.ask(&request).await;
    assert_eq!(answer.unwrap().output, "Let me look.");
    assert_eq!(ear.stdin.map(|it| it.len()), Some(3 << 20));
}

#[tokio::test]
async fn a_long_prompt_arrives_whole() {
    for provider in [
        "claude",
        "codex",
        "gemini",
        "github_copilot",
        "opencode",
        "mistral_vibe",
    ] {
        let fake = Fake::new("wc -c");
        let mut request = fake.request(provider);
        request.prompt = "é".repeat(100_000);
        let (answer, _) = fake.ask(&request).await;
        assert_eq!(answer.unwrap().output.trim(), "200000", "{provider}");
    }
}

#[tokio::test]
async fn much_output_is_all_on_the_record_and_the_answer_is_capped() {
    // 40 MiB of text, of which 16 MiB are the answer.
    let fake = Fake::new("yes 'a line of text, forty bytes long......' | head -c 41943040");
    let (answer, ear) = fake.ask(&fake.request("claude")).await;
    assert_eq!(answer.unwrap().output.len(), 16 << 20);
    assert!(
        ear.met("context_trim", "output_capped"),
        "{:?}",
        ear.events.len()
    );
    let said: usize = ear
        .events
        .iter()
        .flat_map(|(body, _)| body.texts().map(str::len))
        .sum();
    assert!((41_943_030..=41_943_040).contains(&said), "{said}");
    let largest = ear
        .events
        .iter()
        .flat_map(|(body, _)| body.texts().map(str::len))
        .max();
    assert!(largest.unwrap() <= 4 << 20);
}

#[tokio::test]
async fn text_is_whole_and_in_order_however_long_and_wherever_it_is_divided() {
    // Lines with numbers, and one line of 9 MiB without an end.
    for script in [
        "i=0; while [ $i -lt 30 ]; do printf '%s' \"$i \"; head -c 300000 /dev/zero | tr '\\0' x; echo; i=$((i+1)); done",
        "printf 'begin '; head -c 9437184 /dev/zero | tr '\\0' y; printf ' end'",
    ] {
        let fake = Fake::new(script);
        let (answer, ear) = fake.ask(&fake.request("codex")).await;
        let said: String = ear
            .events
            .iter()
            .flat_map(|(body, _)| body.texts().map(str::to_owned))
            .collect();
        assert_eq!(said, answer.unwrap().output);
        assert_eq!(
            said.trim_end(),
            ear.text.trim_end(),
            "the display has the same"
        );
        let numbers: Vec<&str> = said.split(' ').filter(|part| !part.is_empty()).collect();
        assert!(
            said.starts_with("0 x") || said.starts_with("begin y"),
            "{}",
            &said[..9]
        );
        assert!(said.ends_with('x') || said.ends_with("y end"));
        assert!(
            numbers.len() == 31 || numbers.len() == 3,
            "{}",
            numbers.len()
        );
    }
}

#[tokio::test]
async fn deltas_without_an_end_do_not_fill_the_memory() {
    let text = "z".repeat(1 << 20);
    let delta = format!(
        "{{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"{text}\",\"delta\":true}}\n"
    );
    let fake = Fake::printing(delta.repeat(20).as_bytes());
    let (answer, ear) = fake.ask(&fake.request("gemini")).await;
    let lengths: Vec<usize> = ear
        .events
        .iter()
        .flat_map(|(body, _)| body.texts().map(str::len))
        .collect();
    assert_eq!(lengths, [16 << 20, 4 << 20]);
    assert_eq!(answer.unwrap().output.len(), 16 << 20);
}

#[tokio::test]
async fn tools_that_an_agent_cannot_be_told_of_are_said_to_be_missing() {
    let fake = Fake::new("echo ok");
    let mut request = fake.request("cli");
    request.tools = Some(super::stubs::shouting());
    let argv = serde_json::json!({"argv": ["x", "{prompt}"]});
    request.options = argv.as_object().unwrap().clone();
    let (answer, ear) = fake.ask(&request).await;
    assert_eq!(answer.unwrap().output, "ok");
    assert!(
        ear.met("tool_lifecycle", "not_offered"),
        "{:?}",
        ear.lines()
    );
}

#[tokio::test]
async fn a_line_without_an_end_is_cut_off_and_that_is_said() {
    let script = format!(
        "cat <<'END'\n{SAID}\nEND\nprintf '{{\"type\":\"x\",\"a\":\"'; yes x | tr -d '\\n' | head -c 50000000; echo; echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"ok\",\"session_id\":\"s1\"}}'"
    );
    let fake = Fake::new(&script);
    let (answer, ear) = fake.ask(&fake.request("claude")).await;
    assert_eq!(
        answer.unwrap().output,
        "ok",
        "what follows the line is heard"
    );
    assert!(
        ear.lines().contains(&"note truncated".to_owned()),
        "{:?}",
        ear.lines()
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named_and_stub_mode_is_offered() {
    let mut request = crate::agent::AskRequest::new("claude", "x", "/");
    let options = serde_json::json!({"binary": "/nowhere/claude-is-not-here"});
    request.options = options.as_object().unwrap().clone();
    let (answer, _) = super::ask(&crate::agent::Agents::default(), &request).await;
    let said = answer.unwrap_err().to_string();
    assert!(
        said.contains("/nowhere/claude-is-not-here") && said.contains("--stub"),
        "{said}"
    );
    request.dir = "/nowhere".into();
    let (answer, _) = super::ask(&crate::agent::Agents::default(), &request).await;
    let said = answer.unwrap_err().to_string();
    assert_eq!(said, "the directory /nowhere does not exist");
}

#[tokio::test]
async fn text_streams_to_the_display_and_images_to_the_blobs() {
    let fake = says("true");
    let (_, ear) = fake.ask(&fake.request("claude")).await;
    assert_eq!(ear.text, "Let me look.");
    let image = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}]},"session_id":"s1"}"#;
    let fake = says(&format!("cat <<'END'\n{image}\nEND"));
    let (_, ear) = fake.ask(&fake.request("claude")).await;
    assert_eq!(ear.blobs, 1);
    let texts = ear.events.iter().filter_map(|(body, _)| body.blocks());
    let inline = texts
        .flatten()
        .any(|block| matches!(&block.content, Content::Text(text) if text.contains("iVBOR")));
    assert!(!inline);
}

/// Counts, and keeps nothing.
#[derive(Default)]
struct Counting {
    events: usize,
    bytes: usize,
}

impl crate::agent::Hearer for Counting {
    fn sent(&mut self, _: crate::agent::Sent<'_>) {}
    fn event(&mut self, body: Body, _: quipu_model::Annotations) {
        self.events += 1;
        self.bytes += body.texts().map(str::len).sum::<usize>();
    }
    fn text(&mut self, _: &str) {}
    fn stderr(&mut self, _: &[u8]) {}
}

/// The most memory that this process had, in KiB; `None` where the system does not tell.
fn most_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[tokio::test]
async fn memory_does_not_grow_with_what_an_agent_prints() {
    let text = "t".repeat(60_000);
    let record = format!(
        r#"{{"type":"item.completed","item":{{"id":"item_0","type":"agent_message","text":"{text}"}}}}"#
    );
    let stderr = "yes error | head -c 20000000 >&2";
    for (provider, line) in [("codex", &record), ("gemini", &text)] {
        let fake = Fake::new(&format!(
            "cat > line <<'END'\n{line}\nEND\n{stderr}\nyes \"$(cat line)\" | head -n 2500"
        ));
        let before = most_memory();
        let (mut hearer, calls, never) = (
            Counting::default(),
            Calls::default(),
            CancellationToken::new(),
        );
        let agents = fake.agents(provider);
        let answer = agents
            .ask(&fake.request(provider), &mut hearer, &calls, &never)
            .await;
        assert_eq!(answer.unwrap().output.len(), 16 << 20, "{provider}");
        assert!(hearer.bytes >= 150_000_000, "{provider}: {}", hearer.bytes);
        if let (Some(before), Some(after)) = (before, most_memory()) {
            let grown = after - before;
            assert!(grown < 100 << 10, "{provider}: {grown} KiB");
        }
    }
}
