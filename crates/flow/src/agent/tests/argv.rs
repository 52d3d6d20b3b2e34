//! What each program is given, exactly.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::stubs::shouting;
use crate::agent::command::{Invocation, build};
use crate::agent::provider::Provider;
use crate::agent::{AskRequest, SessionHandle};

fn asked(provider: Provider, options: &Value) -> AskRequest {
    let mut request = AskRequest::new(provider.name(), "PROMPT", "/work");
    request.options = options.as_object().unwrap().clone();
    request
}

fn built(provider: Provider, request: &AskRequest) -> Result<Invocation, String> {
    let program = provider.program().unwrap_or_default().to_owned();
    build(provider, request, program)
}

fn resumed(mut request: AskRequest) -> AskRequest {
    request.session = Some(SessionHandle {
        provider: request.provider.clone(),
        id: Some("SESSION".to_owned()),
        system_prompt: Some("SYSTEM".to_owned()),
        ..SessionHandle::default()
    });
    request
}

/// A session that only Quipu remembers.
fn remembered(mut request: AskRequest) -> AskRequest {
    let said = [("user", "QUESTION"), ("assistant", "ANSWER")];
    let said = said.map(|(role, content)| json!({"role": role, "content": content}));
    request.system_prompt = Some("SYSTEM".to_owned());
    request.session = Some(SessionHandle {
        provider: request.provider.clone(),
        messages: said.into(),
        system_prompt: Some("SYSTEM".to_owned()),
        ..SessionHandle::default()
    });
    request
}

/// What a program is given, for people. Files are shown with their content.
fn shown(title: &str, built: &Result<Invocation, String>) -> String {
    let mut text = format!("# {title}\n");
    let invocation = match built {
        Ok(invocation) => invocation,
        Err(error) => return format!("{text}  refused: {error}\n"),
    };
    let mut whole = String::new();
    for argument in &invocation.argv {
        writeln!(whole, "  {argument:?}").unwrap();
    }
    if let Some(stdin) = &invocation.stdin {
        writeln!(whole, "  < {stdin:?}").unwrap();
    }
    for (key, value) in &invocation.env {
        writeln!(whole, "  {key}={value}").unwrap();
    }
    for (index, file) in invocation.files.iter().enumerate() {
        let path = file.path().to_str().unwrap();
        whole = whole.replace(path, &format!("FILE{index}"));
        let content = std::fs::read_to_string(path).unwrap();
        writeln!(whole, "  FILE{index}: {content}").unwrap();
    }
    text.push_str(&whole);
    text
}

/// A provider in every mode, with and without its options.
fn modes(provider: Provider, plain: &Value, full: &Value) -> String {
    let with_system = |mut request: AskRequest| {
        request.system_prompt = Some("SYSTEM".to_owned());
        request
    };
    let with_tools = |mut request: AskRequest, intercept_builtins: bool| {
        let mut tools = shouting();
        tools.intercept_builtins = intercept_builtins;
        request.tools = Some(tools);
        request
    };
    let plain = || asked(provider, plain);
    let mut dashed = plain();
    dashed.prompt = "--help me".to_owned();
    let mut dashed_system = dashed.clone();
    dashed_system.system_prompt = Some("-s".to_owned());
    let mut other_system = resumed(plain());
    other_system.system_prompt = Some("ANOTHER".to_owned());
    let mut zero = plain();
    zero.prompt = "a\0b".to_owned();
    let cases = [
        ("single", plain()),
        ("single, system prompt", with_system(plain())),
        ("single, all options", with_system(asked(provider, full))),
        ("resumed", resumed(plain())),
        (
            "resumed, the same system prompt",
            with_system(resumed(plain())),
        ),
        ("resumed, another system prompt", other_system),
        ("by what was said", remembered(plain())),
        ("resumed, all options", resumed(asked(provider, full))),
        ("a prompt that begins with a dash", dashed),
        ("a system prompt that begins with a dash", dashed_system),
        ("a zero byte", zero),
        ("tools", with_tools(plain(), false)),
        (
            "tools, all options",
            with_tools(asked(provider, full), false),
        ),
        ("tools instead of its own", with_tools(plain(), true)),
        (
            "tools instead of its own, resumed",
            resumed(with_tools(plain(), true)),
        ),
    ];
    let mut text = String::new();
    for (title, request) in cases {
        text.push_str(&shown(title, &built(provider, &request)));
    }
    text
}

#[test]
fn claude_is_started_so() {
    let full = json!({"model": "opus", "allowed_tools": ["Read", "Grep"], "disallowed_tools": "Bash",
        "max_turns": 3, "permission_mode": "plan", "add_dirs": ["/a", "/b"], "dangerously_skip_permissions": true});
    insta::assert_snapshot!(modes(Provider::Claude, &json!({}), &full));
}

#[test]
fn codex_is_started_so() {
    let full = json!({"model": "gpt-5", "sandbox": "workspace-write", "config": ["a=1"],
        "skip_git_repo_check": true, "dangerously_skip_permissions": true});
    insta::assert_snapshot!(modes(Provider::Codex, &json!({}), &full));
}

#[test]
fn gemini_is_started_so() {
    let full = json!({"model": "gemini-2.5-pro", "dangerously_skip_permissions": true});
    insta::assert_snapshot!(modes(Provider::Gemini, &json!({}), &full));
}

#[test]
fn copilot_is_started_so() {
    let full = json!({"model": "gpt-5", "mode": "plan", "effort": "high", "allow_tools": ["shell(git)", "write"],
        "deny_tools": "shell(rm)", "dangerously_skip_permissions": true});
    insta::assert_snapshot!(modes(Provider::Copilot, &json!({}), &full));
}

#[test]
fn opencode_is_started_so() {
    let full = json!({"model": "anthropic/claude-sonnet-4-5", "framework": "F", "verbose": true, "output": "D",
        "agent": "build", "dangerously_skip_permissions": true});
    insta::assert_snapshot!(modes(Provider::OpenCode, &json!({}), &full));
}

#[test]
fn vibe_is_started_so() {
    let full = json!({"model": "devstral", "output": "json", "max_turns": 5, "max_tokens": 1000, "max_price": 0.5,
        "workdir": "D", "enabled_tools": ["read_file", "grep"], "add_dirs": ["/a"], "trust": true,
        "dangerously_skip_permissions": true});
    insta::assert_snapshot!(modes(Provider::Vibe, &json!({}), &full));
}

#[test]
fn a_cli_of_any_kind_is_started_so() {
    let plain = json!({"argv": ["my-agent", "{{prompt}}"]});
    let full = json!({"argv": ["my-agent", "-m", "{model}", "-s={{system_prompt}}", "--mcp={mcp_config}", "--", "{{prompt}}"],
        "resume_argv": ["my-agent", "--session={session}", "-"], "prompt_via": "stdin", "model": "m1",
        "stream": "claude-stream", "answer": "all"});
    insta::assert_snapshot!(modes(Provider::Cli, &plain, &full));
}

#[test]
fn what_is_filled_into_arguments_is_not_filled_again() {
    let mut request = asked(
        Provider::Cli,
        &json!({"argv": ["x", "{{prompt}} {other} {"]}),
    );
    request.prompt = "{model} {{session}}".to_owned();
    let built = built(Provider::Cli, &request).unwrap();
    assert_eq!(built.argv[1], "{model} {{session}} {other} {");
}

#[test]
fn the_first_turn_of_opencode_never_continues_another_session() {
    for system in [None, Some("SYSTEM")] {
        for keep_session in [false, true] {
            let mut request = asked(Provider::OpenCode, &json!({}));
            request.system_prompt = system.map(str::to_owned);
            request.keep_session = keep_session;
            let argv = built(Provider::OpenCode, &request).unwrap().argv;
            assert!(!argv.iter().any(|it| it == "-c" || it == "-s"), "{argv:?}");
            assert!(argv[2].ends_with("PROMPT"), "{argv:?}");
        }
    }
}

#[test]
fn the_system_prompt_reaches_every_agent_in_every_mode() {
    for provider in Provider::ALL {
        if provider == Provider::OpenAi {
            continue;
        }
        for keep_session in [false, true] {
            for prompt in [
                "PROMPT".to_owned(),
                "-PROMPT".to_owned(),
                "P".repeat(200_000),
            ] {
                let options = json!({"argv": ["x", "--", "{prompt}"], "prompt_via": if prompt.len() > 10 { "stdin" } else { "argv" }});
                let mut request = asked(provider, &options);
                request.system_prompt = Some("SYSTEM".to_owned());
                (request.prompt, request.keep_session) = (prompt, keep_session);
                if provider == Provider::Cli && request.prompt.len() > 10 {
                    request.options = json!({"argv": ["x"]}).as_object().unwrap().clone();
                }
                let built = built(provider, &request).unwrap();
                let given = built
                    .argv
                    .iter()
                    .chain(&built.stdin)
                    .any(|it| it.contains("SYSTEM"));
                assert!(given, "{provider:?}");
            }
        }
    }
}

#[test]
fn files_are_their_owners_alone_and_gone_afterwards() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut request = asked(Provider::Claude, &json!({}));
    request.system_prompt = Some("S".repeat(200_000));
    request.tools = Some(shouting());
    let built = built(Provider::Claude, &request).unwrap();
    assert_eq!(built.files.len(), 2);
    let paths: Vec<_> = built
        .files
        .iter()
        .map(|file| file.path().to_owned())
        .collect();
    for path in &paths {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    drop(built);
    assert!(!paths.iter().any(|path| path.exists()));
}

#[test]
fn no_argument_is_longer_than_the_system_takes() {
    for provider in Provider::ALL {
        if matches!(provider, Provider::OpenAi | Provider::Cli) {
            continue;
        }
        let mut request = asked(provider, &json!({}));
        for length in [131_000, 131_008, 131_009, 131_072, 500_000] {
            request.prompt = "p".repeat(length);
            let built = built(provider, &request).unwrap();
            assert!(
                built.argv.iter().all(|it| it.len() < 131_072),
                "{provider:?}"
            );
            let whole = built
                .argv
                .iter()
                .chain(&built.stdin)
                .any(|it| it.len() >= length);
            assert!(whole, "{provider:?}");
        }
    }
}
