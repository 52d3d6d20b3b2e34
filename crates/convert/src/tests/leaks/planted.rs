//! Sessions that are made up, with facts in them that a copy must not give back.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// A session of somebody, as two agents would write it down. `day` is one of June 2026.
pub(super) struct Planted {
    pub(super) name: &'static str,
    pub(super) log: String,
}

const OTHER_SUM: &str = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

/// All of them: two sessions of the same person, each as Claude Code and as Codex write them.
pub(super) fn all() -> Vec<Planted> {
    vec![
        Planted {
            name: "claude-1",
            log: claude(3),
        },
        Planted {
            name: "claude-2",
            log: claude(17),
        },
        Planted {
            name: "codex-1",
            log: codex(3),
        },
        Planted {
            name: "codex-2",
            log: codex(17),
        },
    ]
}

/// The instant of a second of a session.
fn at(day: u64, second: u64) -> u64 {
    // 2026-06-01T09:00:00Z
    1_780_304_400_000 + day * 86_400_000 + second * 1000 + 137 + second
}

fn stamp(day: u64, second: u64) -> String {
    let at = i64::try_from(at(day, second)).unwrap();
    quipu_model::Timestamp::from_millisecond(at)
        .unwrap()
        .to_string()
}

fn uuid(at: u64, n: u64) -> String {
    format!(
        "{:08x}-{:04x}-7{:03x}-8{:03x}-{:012x}",
        at >> 16,
        at & 0xffff,
        0xabc - n,
        n,
        0xfeed_0000_0000 + n
    )
}

fn ulid(at: u64, n: u64) -> String {
    let digit =
        |n: u64| char::from(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"[usize::try_from(n & 31).unwrap()]);
    let head: String = (0..10)
        .rev()
        .map(|place| digit(at >> (5 * place)))
        .collect();
    let tail: String = (0..16).map(|place| digit(n * 7 + place * 11 + 3)).collect();
    head + &tail
}

/// A forty-digit sum of something.
pub(super) fn commit(n: u64) -> String {
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    for _ in 0..3 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        write!(text, "{:016x}", state ^ state >> 29).unwrap();
    }
    text.truncate(40);
    text
}

/// What was said and done, whoever wrote it down: texts of a person, of the agent, commands and what they gave back.
fn said(day: u64) -> [String; 4] {
    let then = at(day, 0);
    let seconds = then / 1000;
    let user = format!(
        "Look at https://github.com/quillfeather/orrery-engine/pull/7 and mend the spectora client, \
         the one in SpectoraClient.ts that reads SPECTORA_TOKEN from spectora_db. Spectroa is my typo. \
         SLM_TOKEN is set. Your files are in /tmp/agent/{}/notes. It broke at {seconds} ({then}), in rollout-{}-{}.jsonl, see https://acme.slack.com/archives/C01/p{seconds}123456 \
         and thread {seconds}.123456, order {:08x}aabbccddeeff0011, trace {}. Deployed on {} by marlowe.",
        uuid(then, 1),
        stamp(day, 0)[..19].replace(':', "-"),
        uuid(then, 9),
        seconds,
        ulid(then, 4),
        &stamp(day, 0)[..10],
    );
    let agent = format!(
        "I looked: commit {} broke it (issue #71234, https://github.com/quillfeather/orrery-engine/issues/71234), and the lock file has sha256 {OTHER_SUM}. \
         Quillfeather's orrery-engine calls kestrelhub; @wrenlock/ui is fine. thornfield has no room left.",
        commit(day)
    );
    let command = format!(
        "gh issue view 71234 && gh api repos/quillfeather/orrery-engine/commits/{} && git show {} && ssh marlowe@thornfield uptime",
        commit(day),
        &commit(day)[..9]
    );
    let output = format!(
        "marlowe@thornfield:~/src/spectora-labs-monorepo$ git remote -v\n\
         origin\tgit@github.com:spectora-labs/spectora-labs-monorepo.git (fetch)\n\
         origin\tgit@github.com:spectora-labs/spectora-labs-monorepo.git (push)\n\
         [main {}] mend it\n\
         tree {}\n\
         module github.com/brindlewick/kestrelhub/v2\n\
         > @wrenlock/ui@1.0.0 test\n\
         -rw-r--r-- 1 marlowe marlowe 4711 Jun  4 09:00 notes.md\n\
         /home/marlowe/.cache/spectora-labs-monorepo/{}.log\n",
        &commit(day)[..7],
        commit(day + 100),
        stamp(day, 1).replace([':', '.'], "-"),
    );
    [user, agent, command, output]
}

fn lines(records: &[Value]) -> String {
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

fn claude(day: u64) -> String {
    let [user, agent, command, output] = said(day);
    let session = uuid(at(day, 0), 1);
    let call = format!("toolu_{}", ulid(at(day, 2), 2));
    let base = |n: u64, kind: &str, message: Value| {
        let parent = (n > 1).then(|| uuid(at(day, n - 1), n + 19));
        json!({
            "type": kind, "uuid": uuid(at(day, n), n + 20), "parentUuid": parent, "timestamp": stamp(day, n),
            "sessionId": session, "cwd": "/home/marlowe/src/spectora-labs-monorepo", "gitBranch": "spectora-billing-fix",
            "version": "2.1.200", "isSidechain": false, "userType": "external",
            "requestId": format!("req_{}", ulid(at(day, n), 5)), "message": message,
        })
    };
    let usage = json!({"input_tokens": 18_217 + day, "output_tokens": 4_093 + day, "cache_read_input_tokens": 77_113 + day});
    let model = "claude-sonnet-4-5-20250929";
    let id = format!("msg_{}", ulid(at(day, 2), 6));
    lines(&[
        base(1, "user", json!({"role": "user", "content": user})),
        base(
            2,
            "assistant",
            json!({"id": id, "type": "message", "role": "assistant", "model": model, "usage": usage,
            "content": [{"type": "text", "text": agent}, {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}]}),
        ),
        base(
            3,
            "user",
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": output}]}),
        ),
    ])
}

fn codex(day: u64) -> String {
    let [user, agent, command, output] = said(day);
    let line = |n: u64, kind: &str, payload: Value| json!({"timestamp": stamp(day, n), "type": kind, "payload": payload});
    let call = format!("call_{}", ulid(at(day, 3), 2));
    lines(&[
        line(
            0,
            "session_meta",
            json!({
                "id": uuid(at(day, 0), 1), "timestamp": stamp(day, 0), "cwd": "/home/marlowe/src/spectora-labs-monorepo",
                "originator": "codex_cli_rs", "cli_version": "0.42.0", "instructions": null,
                "git": {"commit_hash": commit(day), "branch": "spectora-billing-fix", "repository_url": "git@github.com:spectora-labs/spectora-labs-monorepo.git"},
            }),
        ),
        line(
            1,
            "response_item",
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": user}]}),
        ),
        line(
            2,
            "response_item",
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": agent}]}),
        ),
        line(
            3,
            "response_item",
            json!({"type": "function_call", "name": "shell", "call_id": call,
            "arguments": json!({"command": ["bash", "-lc", command]}).to_string()}),
        ),
        line(
            4,
            "response_item",
            json!({"type": "function_call_output", "call_id": call,
            "output": json!({"output": output, "metadata": {"exit_code": 0, "duration_seconds": 0.417}}).to_string()}),
        ),
    ])
}
