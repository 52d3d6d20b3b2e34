//! Options, before anybody is asked.

use serde_json::{Map, Value, json};

use crate::agent::{AgentOptions, Agents};

fn options(options: Value) -> Map<String, Value> {
    let Value::Object(options) = options else {
        panic!("not an object");
    };
    options
}

fn check(provider: &str, given: Value) -> Result<(), String> {
    Agents::default().check(provider, &options(given))
}

#[test]
fn an_unknown_provider_is_answered_with_the_nearest() {
    for (name, nearest) in [
        ("cluade", "claude"),
        ("copilot", "github_copilot"),
        ("open_code", "opencode"),
        ("openai", "openai_compatible"),
    ] {
        let error = check(name, json!({})).unwrap_err();
        assert!(
            error.contains(&format!("did you mean {nearest}?")),
            "{error}"
        );
    }
    let error = check("zzz", json!({})).unwrap_err();
    assert!(error.contains("there are claude, codex"), "{error}");
}

#[test]
fn models_are_checked_where_their_names_are_known() {
    for (provider, good, bad) in [
        ("claude", "sonnet", "gpt-5"),
        ("claude", "claude-opus-4-5", "Sonnet"),
        ("codex", "gpt-5", "sonnet"),
        ("codex", "o3-mini", "opus"),
        ("codex", "codex-mini", "oh"),
        ("gemini", "gemini-2.5-pro", "gpt-5"),
        ("opencode", "anthropic/claude", "--help"),
        ("mistral_vibe", "devstral", "-x"),
    ] {
        assert_eq!(
            check(provider, json!({"model": good})),
            Ok(()),
            "{provider} {good}"
        );
        let error = check(provider, json!({"model": bad})).unwrap_err();
        assert!(
            error.contains("options.model") && error.contains(bad),
            "{error}"
        );
    }
    assert_eq!(
        check("github_copilot", json!({"model": "claude-sonnet-4.6"})),
        Ok(())
    );
    assert_eq!(
        check("claude", json!({"model": "{{.inputs.model}}"})),
        Ok(()),
        "not known yet"
    );
}

#[test]
fn options_out_of_range_are_named_with_the_range() {
    for (provider, given, words) in [
        (
            "openai_compatible",
            json!({"temperature": 2.5}),
            "from 0 to 2",
        ),
        (
            "openai_compatible",
            json!({"temperature": "warm"}),
            "from 0 to 2",
        ),
        ("openai_compatible", json!({"top_p": -0.1}), "from 0 to 1"),
        ("openai_compatible", json!({"max_tokens": 0}), "at least 1"),
        ("openai_compatible", json!({"retries": 11}), "from 0 to 10"),
        (
            "openai_compatible",
            json!({"base_url": "ftp://x"}),
            "http://",
        ),
        (
            "github_copilot",
            json!({"mode": "fast"}),
            "interactive, plan, autopilot",
        ),
        (
            "github_copilot",
            json!({"effort": "max"}),
            "low, medium, high",
        ),
        ("codex", json!({"sandbox": "none"}), "read-only"),
        ("gemini", json!({"approval_mode": "yes"}), "yolo"),
        ("mistral_vibe", json!({"output": "xml"}), "streaming"),
        ("mistral_vibe", json!({"max_price": -1}), "at least 0"),
        ("claude", json!({"max_turns": 1.5}), "whole number"),
        (
            "claude",
            json!({"dangerously_skip_permissions": "maybe"}),
            "true or false",
        ),
        ("claude", json!({"allowed_tools": [1]}), "list of texts"),
        ("cli", json!({}), "options.argv is missing"),
        (
            "cli",
            json!({"argv": ["x"], "stream": "claud-stream"}),
            "did you mean claude-stream?",
        ),
        (
            "cli",
            json!({"argv": ["x"], "prompt_via": "argv"}),
            "{prompt}",
        ),
    ] {
        let error = check(provider, given.clone()).unwrap_err();
        assert!(error.contains(words), "{provider} {given}: {error}");
    }
}

#[test]
fn unknown_options_are_told_with_the_nearest() {
    let agents = Agents::default();
    let given = options(json!({"model": "sonnet", "allowed_tool": "Read", "zzz": 1}));
    let told = agents.unknown_options("claude", &given);
    assert_eq!(
        told,
        [
            "claude has no option \"allowed_tool\"; did you mean allowed_tools?",
            "claude has no option \"zzz\""
        ]
    );
}

#[test]
fn whether_a_program_is_there_is_known_before_it_is_asked() {
    let mut made = AgentOptions::default();
    made.programs.insert("claude".to_owned(), "/bin/sh".into());
    made.programs
        .insert("codex".to_owned(), "/nowhere/codex".into());
    let agents = Agents::new(made);
    assert_eq!(agents.program("claude"), Some("/bin/sh"));
    assert_eq!(agents.program("gemini"), Some("gemini"));
    assert_eq!(agents.program("openai_compatible"), None);
    assert!(agents.is_installed("claude"));
    assert!(!agents.is_installed("codex"));
    assert!(agents.is_installed("openai_compatible"));
    assert!(!agents.is_installed("nobody"));
}
