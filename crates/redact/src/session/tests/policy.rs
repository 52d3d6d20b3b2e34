//! What becomes of what, by example.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use quipu_formats::normalized::{Beyond, NormalizedOptions};
use quipu_model::{
    Block, Body, Content, Draft, EventType, Fidelity, Json, Note, NoteKind, Place, RunId,
};

use super::{call, check, engine, key, result, said, session, share, share_with, token, written};
use crate::session::{Decisions, Name, NameOf, Redactor, ValueHash, masker};
use crate::{Certainty, Profile};

fn stream(text: &str) -> Body {
    Body::AssistantMessage(vec![Block {
        fidelity: Fidelity::AgentEmitted,
        content: Content::Stream(text.to_owned()),
    }])
}

fn blocks(contents: Vec<Content>) -> Body {
    let block = |content| Block {
        fidelity: Fidelity::AgentEmitted,
        content,
    };
    Body::AssistantMessage(contents.into_iter().map(block).collect())
}

fn mine(text: &str) -> Profile {
    Profile::parse(text, Path::new("mine.toml")).unwrap()
}

#[test]
fn receipts_name_the_field_and_the_place() {
    let text = format!("é key {} end", token(1));
    let out = written(vec![said(&text)], "team");
    assert!(
        out.contains(r#""text":"é key [REDACTED:github] end""#),
        "{out}"
    );
    let receipt = r#""redactions":[{"field":"text","ruleId":"github","type":"secret","placeholder":"[REDACTED:github]","start":6,"end":23,"commitment":""#;
    assert!(out.contains(receipt), "{out}");
    assert!(
        out.contains(r#""redactionCount":1"#) && out.contains(r#""rulesMatched":{"github":1}"#),
        "{out}"
    );
}

#[test]
fn the_same_secret_has_the_same_placeholder_everywhere() {
    let (one, two) = (token(1), token(2));
    let out = written(
        vec![said(&format!("{one} {two}")), said(&format!("{two}{one}"))],
        "team",
    );
    assert!(
        out.contains(r#""text":"[REDACTED:github] [REDACTED:github#2]""#),
        "{out}"
    );
    assert!(
        out.contains(r#""text":"[REDACTED:github#2][REDACTED:github]""#),
        "{out}"
    );
}

#[test]
fn a_secret_that_is_cut_in_two_is_found() {
    let secret = token(3);
    let (head, tail) = secret.split_at(11);
    let text = |text: String| Content::Text(text);
    let out = written(
        vec![blocks(vec![
            text(format!("a {head}")),
            text(format!("{tail} b")),
        ])],
        "team",
    );
    assert!(out.contains(r#"{"type":"text","text":"a [REDACTED:github]"},{"type":"text","text":"[REDACTED:github] b"}"#), "{out}");
    assert!(!out.contains(head) && !out.contains(tail), "{out}");
    // Over events of a stream, where one batch of what is held back ends and the next begins.
    for (size, before) in [(1, super::super::HELD_EVENTS), (17, super::super::HELD)] {
        let whole = format!(
            "{}{secret}{}",
            "x ".repeat(before / 2 - 9),
            " y".repeat(900)
        );
        let letters: Vec<char> = whole.chars().collect();
        let pieces = letters
            .chunks(size)
            .map(|piece| stream(&piece.iter().collect::<String>()))
            .collect();
        let (header, events) = session(pieces);
        let team = Profile::builtin("team").unwrap();
        let (_, shared, bytes) = share(&header, &NormalizedOptions::default(), &events, &team);
        assert_eq!(shared.len(), events.len());
        let joined: String = shared
            .iter()
            .flat_map(|(event, _)| super::super::chunks(event))
            .collect();
        assert!(!joined.contains(&secret[6..]), "{size}");
        let left = joined.replace("[REDACTED:github]", "");
        assert_eq!(left, whole.replace(&secret, ""), "{size}");
        check(&bytes);
    }
}

#[test]
fn keys_numbers_and_json_in_strings_are_looked_at() {
    let secret = token(4);
    let inner = Json::string(&format!(
        r#"{{"note":"\u00e9","db_password":"hunter\n22","t":"{secret}"}}"#
    ));
    let input = format!(
        r#"{{ "{secret}" : {{"x":"{secret}"}}, "password":"correct-horse","a.b":["{secret}"],"d":1,"d":"{secret}","card": 4929152736184028, "inner":{}}}"#,
        inner.get()
    );
    let out = written(
        vec![call("c1", "Mcp", &input), result("c1", "Mcp", "1")],
        "team",
    );
    let expected = r#""input":{ "[REDACTED:github]" : {"x":"[REDACTED:github]"}, "password":"[REDACTED:password]","a.b":["[REDACTED:github]"],"d":1,"d":"[REDACTED:github]","card": "[REDACTED:card]", "inner":"{\"note\":\"\\u00e9\",\"db_password\":\"[REDACTED:password#2]\",\"t\":\"[REDACTED:github]\"}"}"#;
    assert!(out.contains(expected), "{out}");
    for field in [
        r#""tool.input{0}""#,
        r#""tool.input[0].x""#,
        r#""tool.input.password""#,
        r#""tool.input[\"a.b\"][0]""#,
        r#""tool.input[4]""#,
        r#""tool.input.card""#,
        r#""tool.input.inner""#,
    ] {
        assert!(
            out.contains(&format!("\"field\":{field}")),
            "{field} in {out}"
        );
    }
    // A name in a text that is JSON says what its value is.
    let text = format!(r#"{{"db_password":"{}"}}"#, "sesame-street");
    let out = written(vec![said(&text)], "team");
    assert!(
        out.contains(r#"{\"db_password\":\"[REDACTED:password]\"}"#),
        "{out}"
    );
}

#[test]
fn reasoning_leaves_a_note() {
    let thought = || Content::Thinking("it may be the loom".to_owned());
    let session = || {
        vec![
            blocks(vec![thought()]),
            blocks(vec![Content::Text("yes".to_owned()), thought()]),
        ]
    };
    let kept = written(session(), "research");
    assert!(
        kept.contains(r#""type":"reasoning""#) && kept.contains("it may be"),
        "{kept}"
    );
    let out = written(session(), "public");
    assert!(!out.contains("it may be"), "{out}");
    let note = r#""seq":1,"timestamp":"#;
    assert!(out.contains(note) && out.contains(r#""type":"meta","role":"system","text":"[REDACTED:reasoning]","meta":{"kind":"truncated","replaces":"reasoning"}"#), "{out}");
    assert!(
        out.contains(r#"{"type":"thinking","text":"[REDACTED:reasoning]"}"#),
        "{out}"
    );
}

#[test]
fn contents_of_files_go_and_their_paths_stay() {
    let bodies = vec![
        call("c1", "Read", r#"{"file_path":"src/loom.rs"}"#),
        result("c1", "Read", r#""1\tfn weave() {}\n2\t""#),
        call(
            "c2",
            "Edit",
            r#"{"file_path":"src/loom.rs","edits":[{"old_string":"weave","new_string":"fn spin() {}\n"}]}"#,
        ),
        result(
            "c2",
            "Edit",
            r#"{"filePath":"src/loom.rs","originalFile":"fn weave","message":"done"}"#,
        ),
        call(
            "c3",
            "shell",
            r#"{"command":["bash","-lc","apply_patch <<'E'\n*** Begin Patch\n*** Update File: src/loom.rs\n-weave\n+spin\n*** End Patch\nE"]}"#,
        ),
        result("c3", "shell", r#""Success""#),
    ];
    let out = written(bodies, "research");
    for gone in ["weave", "spin"] {
        assert!(!out.contains(gone), "{gone} in {out}");
    }
    for kept in [
        r#""output":"[REDACTED:file-contents-2-lines]""#,
        r#""edits":[{"old_string":"[REDACTED:file-contents-1-lines]","new_string":"[REDACTED:file-contents-1-lines]"}]"#,
        r#"{"filePath":"src/loom.rs","originalFile":"[REDACTED:file-contents-1-lines]","message":"done"}"#,
        r"*** Update File: src/loom.rs\n[REDACTED:file-contents-2-lines]\n*** End Patch",
        r#""field":"tool.input.edits[0].new_string""#,
    ] {
        assert!(out.contains(kept), "{kept} in {out}");
    }
}

#[test]
fn files_that_are_secret_go_as_a_whole() {
    let bodies = vec![
        call("c1", "Read", r#"{"file_path":"/code/.env"}"#),
        result("c1", "Read", r#"{"file":{"content":"LOOM=warp\n"}}"#),
        call(
            "c2",
            "Write",
            r#"{"file_path":"/code/.env","content":"LOOM=weft"}"#,
        ),
        result("c2", "Write", r#""ok""#),
        call("c3", "Bash", r#"{"command":"cat .env"}"#),
        result(
            "c3",
            "Bash",
            r#"{"stdout":"LOOM=warp\nSHED=weft\n","stderr":""}"#,
        ),
        call("c4", "Bash", r#"{"command":"cat notes.md"}"#),
        result("c4", "Bash", r#""about looms""#),
    ];
    let out = written(bodies, "team");
    assert!(!out.contains("warp") && !out.contains("weft"), "{out}");
    assert!(
        out.contains("about looms") && out.contains(r#""ruleId":"sensitive-file","type":"secret""#),
        "{out}"
    );
    assert!(
        out.contains(r#""outputValue":{"stdout":"[REDACTED:sensitive-file]","stderr":""}"#),
        "{out}"
    );
}

/// What is outside of a patch is looked at as any text, and what is removed once more keeps its receipts.
#[test]
fn a_patch_and_a_secret_beside_it_both_go() {
    let secret = token(11);
    let line = format!(
        "T={secret} apply_patch\n*** Begin Patch\n*** Add File: a\n+{}\n*** End Patch\n{secret}",
        token(12)
    );
    let input = format!(r#"{{"command":{}}}"#, Json::string(&line).get());
    let bodies = || vec![call("c1", "shell", &input), result("c1", "shell", "1")];
    let (header, events) = session(bodies());
    let (team, research) = (
        Profile::builtin("team").unwrap(),
        Profile::builtin("research").unwrap(),
    );
    let out = written(bodies(), "research");
    let expected = r"T=[REDACTED:github] apply_patch\n*** Begin Patch\n*** Add File: a\n[REDACTED:file-contents-1-lines]\n*** End Patch\n[REDACTED:github]";
    assert!(out.contains(expected), "{out}");
    let (outcome, shared, _) = share(&header, &NormalizedOptions::default(), &events, &team);
    let (_, again, bytes) = share(&outcome.header, &outcome.options, &shared, &research);
    check(&bytes);
    let rules: Vec<&str> = again[0]
        .1
        .redactions
        .iter()
        .map(|it| it.rule_id.as_str())
        .collect();
    assert_eq!(rules, ["github", "policy-file-contents", "github"]);
}

#[test]
fn outputs_are_shaped_by_the_policy() {
    let long = "loom ".repeat(2000);
    let bodies = || {
        let output = Json::parse(&format!(
            r#"{{"stdout":{},"n":3,"stderr":"warp and weft"}}"#,
            Json::string(&long).get()
        ))
        .unwrap();
        vec![
            call("c1", "Bash", r#"{"command":"make"}"#),
            result("c1", "Bash", output.get()),
        ]
    };
    let truncated = written(bodies(), "research");
    let end = r#"[REDACTED:truncated-6000-characters]","n":3,"stderr":"[REDACTED:truncated-13-characters]""#;
    assert!(truncated.contains(end), "{truncated}");
    let described = written(bodies(), "public");
    assert!(
        described.contains(r#""output":"[REDACTED:tool-output-object-10000-bytes]""#),
        "{described}"
    );
    let none = written(bodies(), "structure-only");
    assert!(
        none.contains(r#""input":"[REDACTED:tool-input]","#)
            || none.contains(r#""input":"[REDACTED:tool-input]"}"#),
        "{none}"
    );
    assert!(
        none.contains(r#""output":"[REDACTED:tool-output]""#),
        "{none}"
    );
}

#[test]
fn the_places_of_a_session_have_other_names_wherever_they_stand() {
    let text = "cd /home/ada/code/app/src on fix/loom-7 of lovelace/engine, by ada, not /home/bob/x/y, at /home/ada/z on loom9";
    let (header, events) = session(vec![said(text)]);
    let decisions = Decisions {
        names: vec![Name {
            of: NameOf::Host,
            text: "loom9".to_owned(),
        }],
        ..Decisions::default()
    };
    let research = Profile::builtin("research").unwrap();
    let (outcome, _, bytes) = share_with(
        &header,
        &NormalizedOptions::default(),
        &events,
        &research,
        &decisions,
    );
    check(&bytes);
    let stands = |word: &str, of: &str| key().pseudonym(word, of);
    let expected = format!(
        "cd {}/src on {} of {}, by {}, not /home/{}/x/y, at /home/{}/z on {}",
        stands("dir", "/home/ada/code/app"),
        stands("branch", "fix/loom-7"),
        stands("repo", "https://example.com/lovelace/engine.git"),
        stands("user", "ada"),
        stands("user", "bob"),
        stands("user", "ada"),
        stands("host", "loom9"),
    );
    let out = String::from_utf8(bytes).unwrap();
    assert!(out.contains(&expected), "{expected}\n{out}");
    assert_eq!(
        outcome.header.environment.cwd,
        Some(stands("dir", "/home/ada/code/app"))
    );
    assert!(
        out.contains(
            r#"{"field":"session.environment.cwd","ruleId":"environment-dir","type":"identity""#
        ),
        "{out}"
    );
    assert!(
        !out.contains("/ada") && !out.contains(" ada") && !out.contains("lovelace"),
        "{out}"
    );
}

#[test]
fn what_is_beyond_a_cap_is_cut_and_said_so() {
    let bodies = vec![
        said("one"),
        call("c1", "Bash", r#"{"command":"make"}"#),
        said("three"),
        result("c1", "Bash", r#""a secret pattern""#),
        said("five"),
    ];
    let (header, events) = session(bodies);
    for profile in [
        mine("extends = \"team\"\nmax-events = 2"),
        mine("extends = \"team\"\nmax-bytes = 300"),
    ] {
        let (outcome, shared, bytes) =
            share(&header, &NormalizedOptions::default(), &events, &profile);
        check(&bytes);
        let numbers: Vec<u64> = shared.iter().map(|(event, _)| event.seq).collect();
        assert_eq!(numbers, [1, 2, 4, 6]);
        assert_eq!((outcome.cut.events, outcome.header.totals.events), (2, 4));
        let out = String::from_utf8(bytes.clone()).unwrap();
        assert!(
            !out.contains("secret pattern") && out.contains(r#""output":"[REDACTED:tool-output]""#),
            "{out}"
        );
        assert!(
            out.contains(r#""meta":{"kind":"truncated","raw":{"cut":{"events":2,"bytes":"#),
            "{out}"
        );
        assert_eq!(
            quipu_formats::normalized::verify(&bytes[..])
                .unwrap()
                .findings,
            []
        );
        let (_, _, again) = share(&outcome.header, &outcome.options, &shared, &profile);
        assert_eq!(String::from_utf8(again).unwrap(), out);
        let mut against = crate::receipt::Against::new(
            &bytes[..],
            &header,
            &NormalizedOptions::default(),
            Some(&key()),
        )
        .unwrap();
        for (event, beyond) in &events {
            against.event(event, beyond).unwrap();
        }
        let report = against.finish().unwrap();
        assert!(report.is_good(), "{:?}", report.problems);
    }
}

#[test]
fn what_nobody_knows_is_kept_only_where_all_is() {
    let note = |text: &str| {
        Body::Note(Note {
            kind: NoteKind::FileSnapshot,
            text: Some(text.to_owned()),
            raw: Some(Json::parse(r#"{"thread":"indigo"}"#).unwrap()),
        })
    };
    let (header, mut events) = session(vec![
        note("a snapshot"),
        call("c1", "Bash", "{}"),
        result("c1", "Bash", "1"),
    ]);
    events[1].1 = Beyond {
        extra: vec![
            ("mood".to_owned(), Json::string("indigo")),
            ("text".to_owned(), Json::string("Running it")),
        ],
        ..Beyond::default()
    };
    let out = |name: &str| {
        let (_, _, bytes) = share(
            &header,
            &NormalizedOptions::default(),
            &events,
            &Profile::builtin(name).unwrap(),
        );
        check(&bytes);
        String::from_utf8(bytes).unwrap()
    };
    assert_eq!(out("team").matches("indigo").count(), 2);
    let research = out("research");
    assert!(
        !research.contains("indigo")
            && research.contains("Running it")
            && research.contains("a snapshot"),
        "{research}"
    );
}

#[test]
fn a_person_decides() {
    let secret = token(9);
    let (header, events) = session(vec![said(&format!("key {secret} here"))]);
    let team = Profile::builtin("team").unwrap();
    let engine = engine();
    let seen = RefCell::new(Vec::new());
    let decisions = Decisions::default();
    let mut redactor = Redactor::new(
        &engine,
        &team,
        &key(),
        &decisions,
        &header,
        &NormalizedOptions::default(),
        &super::super::Learned::default(),
    )
    .with_review(Box::new(|finding| {
        assert_eq!(finding.certainty, Certainty::Sure);
        assert_eq!(
            (finding.excerpt.before, finding.excerpt.behind),
            ("key ", " here")
        );
        assert!(!format!("{finding:?}").contains(finding.excerpt.value));
        seen.borrow_mut()
            .push((finding.seq, finding.field.to_owned(), finding.hash));
    }));
    redactor
        .event(events[0].0.clone(), Beyond::default(), &mut |_, _| Ok(()))
        .unwrap();
    drop(redactor);
    let hash = ValueHash::of(&key(), &secret);
    assert_eq!(*seen.borrow(), [(1, "text".to_owned(), hash)]);
    assert_eq!(ValueHash::parse(&hash.to_string()), Some(hash));
    let mut keep = Decisions::default();
    keep.keep.insert(hash);
    let (outcome, _, bytes) = share_with(
        &header,
        &NormalizedOptions::default(),
        &events,
        &team,
        &keep,
    );
    assert!(String::from_utf8(bytes).unwrap().contains(&secret));
    assert_eq!(outcome.redactions, 0);
}

#[test]
fn drafts_are_masked_before_they_are_written() {
    let secret = token(7);
    let mask = masker(
        Arc::new(engine()),
        &Profile::builtin("structure-only").unwrap(),
        &key(),
    );
    let fidelity = Fidelity::Router;
    let draft = |text: String| {
        Draft::new(
            Place::run(),
            Body::UserMessage(vec![Block::text(fidelity, text)]),
        )
    };
    for _ in 0..2 {
        let mut masked = draft(format!("a {secret} b"));
        mask(&mut masked);
        assert_eq!(masked, draft("a [REDACTED:github] b".to_owned()));
    }
    let mut plain = draft("all else stays, /home/ada too".to_owned());
    let mask = masker(
        Arc::new(engine()),
        &Profile::builtin("team").unwrap(),
        &key(),
    );
    mask(&mut plain);
    assert_eq!(plain, draft("all else stays, /home/ada too".to_owned()));
}

/// Whatever field of an event a secret is handed in with, it is not written.
#[test]
fn a_secret_is_masked_in_every_field_that_is_recorded() {
    let secret = token(7);
    let mask = masker(
        Arc::new(engine()),
        &Profile::builtin("team").unwrap(),
        &key(),
    );
    let blocks = r#"[{"type":"text","fidelity":"router","text":"SECRET"},
        {"type":"thinking","fidelity":"router","thinking":"SECRET"},
        {"type":"tool_use","fidelity":"router","tool_name":"SECRET","tool_id":"SECRET","tool_input":{"SECRET":"SECRET"}},
        {"type":"tool_result","fidelity":"router","tool_id":"SECRET","tool_content":["SECRET"]},
        {"type":"command","fidelity":"router","command":"SECRET"},
        {"type":"stream","fidelity":"router","chunk":"SECRET"}]"#;
    let step = r#"{"name":"SECRET","kind":"SECRET"}"#;
    let end = r#"{"name":"SECRET","kind":"SECRET","error":"SECRET","result":{"a":"SECRET"}}"#;
    let call = r#"{"name":"SECRET","call_id":"SECRET","input":{"a":"SECRET"},"fidelity":"router"}"#;
    let result = r#"{"name":"SECRET","call_id":"SECRET","input":{"a":"SECRET"},"output":"SECRET","error":"SECRET","fidelity":"router"}"#;
    let blob = r#"{"mime":"SECRET","bytes":1,"sha256":""}"#;
    let model_call = r#"{"provider":"SECRET","params":{"SECRET":"SECRET"},"request":BLOB,"response":BLOB,"error":"SECRET"}"#;
    let chunk =
        r#"{"index":0,"text":"SECRET","delta":{"text":"SECRET"},"fidelity":"agent_emitted"}"#;
    let harness = r#"{"category":"SECRET","name":"SECRET","attributes":{"SECRET":"SECRET"}}"#;
    let failure = r#"{"source":"SECRET","code":"SECRET","message":"SECRET"}"#;
    let note = r#"{"kind":"title","text":"SECRET","raw":{"SECRET":"SECRET"}}"#;
    let message = |role: &str| format!(r#"{{"role":"{role}","blocks":{blocks}}}"#);
    let mut call_ids = Vec::new();
    for &event_type in EventType::ALL {
        let (child, payload) = match event_type {
            EventType::RunStarted | EventType::StepStarted => ("", step.to_owned()),
            EventType::RunCompleted | EventType::StepCompleted => ("", end.to_owned()),
            EventType::CallStarted => (r#""child_run_id":"c","#, step.to_owned()),
            EventType::CallCompleted => (r#""child_run_id":"c","#, end.to_owned()),
            EventType::UserMessage => ("", message("user")),
            EventType::AssistantMessage => ("", message("assistant")),
            EventType::ToolCall => ("", call.to_owned()),
            EventType::ToolResult => ("", result.to_owned()),
            EventType::SystemMessage => ("", message("system")),
            EventType::ModelCall => ("", model_call.replace("BLOB", blob)),
            EventType::Chunk => ("", chunk.to_owned()),
            EventType::Harness => ("", harness.to_owned()),
            EventType::Blob => ("", blob.to_owned()),
            EventType::Error => ("", failure.to_owned()),
            EventType::Note => ("", note.to_owned()),
        };
        let line = format!(
            r#"{{"type":"{event_type}",{child}"path":"a.SECRET","payload":{payload},"native_id":"SECRET","parent_id":"SECRET",
            "subagent_id":"SECRET","model":"SECRET","model_call":"SECRET","attachments":[{{"mime":"SECRET","bytes":1,"sha256":""}}],
            "source":{{"file":"SECRET","offset":0,"line":1}}}}"#
        );
        let line = line.replace("SECRET", &secret);
        let mut draft = quipu_exchange::parse_draft(&line, 64).unwrap().draft;
        mask(&mut draft);
        let mut template = quipu_exchange::Template::default();
        let run_id = RunId::new("r").unwrap();
        template.fill(&run_id, None, &draft).unwrap();
        let mut written = Vec::new();
        template.render(1, b"2026-06-08T08:14:42Z", &mut written);
        let written = String::from_utf8(written).unwrap();
        assert!(!written.contains(&secret), "{event_type}: {written}");
        match draft.body {
            Body::ToolCall(call) => call_ids.push(call.call_id),
            Body::ToolResult(result) => call_ids.push(result.call_id),
            _ => {}
        }
    }
    assert_eq!(call_ids[0], call_ids[1], "the result still finds its call");
}

#[test]
fn fields_without_a_place_are_kept_only_where_all_content_is() {
    let secret = &*token(7);
    let (header, mut events) = session(vec![
        call("c1", "Read", r#"{"file_path":"/home/ada/code/app/.env"}"#),
        result("c1", "Read", r#""A=1""#),
        said("hello"),
    ]);
    let extra =
        format!(r#"{{"requestId":"req_1","toolUseResult":{{"originalFile":"TOKEN={secret}"}}}}"#);
    for (event, _) in &mut events[1..] {
        event.annotations.extra = Json::parse(&extra).ok();
        event.annotations.stop_reason = Some("max_tokens".to_owned());
    }
    for profile in super::profiles() {
        let (_, shared, bytes) = share(&header, &NormalizedOptions::default(), &events, &profile);
        check(&bytes);
        for (event, _) in &shared[1..] {
            let notes = &event.annotations;
            assert_eq!(notes.stop_reason.as_deref(), Some("max_tokens"));
            let kept = notes.extra.as_ref().unwrap().get();
            let is_whole = profile.changes_nothing();
            assert_eq!(kept.contains(secret), is_whole, "{} {kept}", profile.name);
            let is_of_secret_file = event.seq == 2 && profile.kinds.contains(&crate::Kind::Secret);
            let stays = profile.keeps_content() && !is_of_secret_file;
            assert_eq!(kept.contains("req_1"), stays, "{} {kept}", profile.name);
        }
    }
}

/// Ids of tokens say what a text said, and what was removed from it.
#[test]
fn tokens_that_spell_a_text_out_go_with_the_first_thing_that_is_removed() {
    let (header, mut events) = session(vec![said("hello"), said("again")]);
    for (event, extra) in events.iter_mut().zip([
        r#"{"metrics":{"completion_token_ids":[4177,31]}}"#,
        r#"{"logprobs":{"content":[{"token":"again","bytes":[97]}]}}"#,
    ]) {
        event.0.annotations.extra = Json::parse(extra).ok();
    }
    for profile in super::profiles() {
        let (_, shared, bytes) = share(&header, &NormalizedOptions::default(), &events, &profile);
        check(&bytes);
        for ((event, _), told) in shared.iter().zip(["4177", "bytes"]) {
            let kept = event.annotations.extra.as_ref().unwrap().get();
            assert_eq!(
                kept.contains(told),
                profile.changes_nothing(),
                "{} {kept}",
                profile.name
            );
        }
    }
}
