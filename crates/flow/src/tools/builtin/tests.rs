use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Builtins, Options};
use crate::beneath::Root;
use crate::tools::tests::{Told, request};
use crate::tools::{Router, ToolOutcome};

/// A workspace with links out of it, a secret beside it, and the tools.
struct Place {
    dir: tempfile::TempDir,
    by_steps: bool,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("sub/deep")).unwrap();
        std::fs::create_dir(dir.path().join("out")).unwrap();
        put(&dir.path().join("out/secret"), "the secret\n");
        put(&root.join("a.txt"), "one\ntwo\nthree\n");
        put(&root.join("sub/b.txt"), "Two again\n");
        put(&root.join("sub/deep/c.rs"), "fn two() {}\n");
        symlink("../out", root.join("up")).unwrap();
        symlink("../out/secret", root.join("up-file")).unwrap();
        symlink(dir.path().join("out"), root.join("far")).unwrap();
        symlink("..", root.join("sub/parent")).unwrap();
        Self {
            dir,
            by_steps: false,
        }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    fn router(&self) -> Router {
        let root = if self.by_steps {
            Root::open_by_steps(&self.root())
        } else {
            Root::open(&self.root())
        };
        let tools = Builtins::over(root.unwrap(), Options::default());
        Router::new(vec![Arc::new(tools)])
    }

    async fn call(&self, name: &str, input: Value) -> ToolOutcome {
        let never = CancellationToken::new();
        self.router()
            .call(request(name, input), &Told::default(), &never)
            .await
    }

    async fn text(&self, name: &str, input: Value) -> String {
        let outcome = self.call(name, input).await;
        assert_eq!(outcome.error, None);
        outcome.output.as_str().unwrap().to_owned()
    }

    async fn error(&self, name: &str, input: Value) -> String {
        let outcome = self.call(name, input.clone()).await;
        outcome.error.unwrap_or_else(|| panic!("{name} {input}"))
    }
}

fn put(path: &Path, text: &str) {
    std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), text.as_bytes()).unwrap();
}

#[tokio::test]
async fn no_tool_leads_out_of_the_root() {
    for by_steps in [false, true] {
        let mut place = Place::new();
        place.by_steps = by_steps;
        let secret = place.dir.path().join("out/secret");
        let paths = [
            "../out/secret",
            "up/secret",
            "up-file",
            "far/secret",
            "sub/../../out/secret",
            "sub/parent/../out/secret",
            secret.to_str().unwrap(),
            "/etc/passwd",
            "/proc/self/environ",
            "/dev/zero",
        ];
        for path in paths {
            place.error("Read", json!({"path": path})).await;
            place
                .error("Write", json!({"path": path, "content": "x"}))
                .await;
            place
                .error("Edit", json!({"path": path, "old": "the", "new": "x"}))
                .await;
            place
                .error("Grep", json!({"pattern": "secret", "path": path}))
                .await;
        }
        let directories = ["..", "up", "far", "sub/../..", "sub/parent/..", "/", "/etc"];
        for cwd in directories {
            place
                .error("Glob", json!({"pattern": "*", "cwd": cwd}))
                .await;
            place
                .error("Grep", json!({"pattern": "secret", "path": cwd}))
                .await;
            place
                .error("Bash", json!({"command": "true", "cwd": cwd}))
                .await;
        }
        for pattern in ["../**", "sub/../../out/*", "/etc/*", "**/../*"] {
            place.error("Glob", json!({"pattern": pattern})).await;
        }
        for glob in ["../**/*", "/etc/*"] {
            place
                .error("Grep", json!({"pattern": "secret", "glob": glob}))
                .await;
        }
        for pattern in ["**", "**/*", "up/*", "far/**", "sub/parent/**"] {
            let found = place.text("Glob", json!({"pattern": pattern})).await;
            assert!(!found.contains("secret"), "{pattern}: {found}");
        }
        let found = place.text("Grep", json!({"pattern": "secret"})).await;
        assert_eq!(found, "No lines match.\n");
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "the secret\n");
        assert_eq!(
            std::fs::read_dir(place.dir.path().join("out"))
                .unwrap()
                .count(),
            1
        );
    }
}

#[tokio::test]
async fn read_gives_lines_and_says_how_to_go_on() {
    let place = Place::new();
    let read = async |input: Value| place.text("Read", input).await;
    assert_eq!(read(json!({"path": "a.txt"})).await, "one\ntwo\nthree\n");
    let absolute = place.root().join("a.txt");
    assert_eq!(read(json!({"path": absolute})).await, "one\ntwo\nthree\n");
    assert_eq!(
        read(json!({"path": "a.txt", "offset": 2, "limit": 1})).await,
        "two\n\n[There is more: go on with offset 3.]"
    );
    assert_eq!(
        read(json!({"path": "a.txt", "offset": 3, "limit": 1})).await,
        "three\n"
    );
    let error = place
        .error("Read", json!({"path": "a.txt", "offset": 9}))
        .await;
    assert!(error.contains("fewer than 9 lines"), "{error}");
    let long = "x".repeat(99) + "\n";
    put(&place.root().join("big"), &long.repeat(60_000));
    let big = read(json!({"path": "big"})).await;
    assert!(big.len() < (5 << 20) + 200, "{}", big.len());
    assert!(
        big.ends_with("go on with offset 52429.]"),
        "{}",
        &big[big.len() - 99..]
    );
    put(&place.root().join("binary"), "a\0b");
    let error = place.error("Read", json!({"path": "binary"})).await;
    assert!(error.contains("not a text file"), "{error}");
}

#[tokio::test]
async fn write_and_edit_change_what_they_say() {
    let place = Place::new();
    let read = |name: &str| std::fs::read_to_string(place.root().join(name)).unwrap();
    place
        .text("Write", json!({"path": "new/dir/f", "content": "a b a"}))
        .await;
    assert_eq!(read("new/dir/f"), "a b a");
    let edit = |old: &str, new: &str, all: bool| json!({"path": "new/dir/f", "old": old, "new": new, "replace_all": all});
    let error = place.error("Edit", edit("a", "c", false)).await;
    assert!(error.contains("occurs 2 times"), "{error}");
    let error = place.error("Edit", edit("z", "c", false)).await;
    assert!(error.contains("does not occur"), "{error}");
    place.error("Edit", edit("", "c", true)).await;
    place.error("Edit", edit("a", "a", true)).await;
    assert_eq!(read("new/dir/f"), "a b a");
    place.text("Edit", edit("a", "c", true)).await;
    place.text("Edit", edit("b", "$1", false)).await;
    assert_eq!(read("new/dir/f"), "c $1 c");
    let huge = "x".repeat((5 << 20) + 1);
    place
        .error("Write", json!({"path": "huge", "content": huge}))
        .await;
    place
        .error("Edit", edit("c", &"x".repeat(3 << 20), true))
        .await;
    assert_eq!(read("new/dir/f"), "c $1 c");
    assert!(!place.root().join("huge").exists());
}

#[tokio::test]
async fn glob_lists_files_by_their_path_from_the_root() {
    let place = Place::new();
    let glob = async |input: Value| place.text("Glob", input).await;
    assert_eq!(
        glob(json!({"pattern": "**/*.{txt,rs}"})).await,
        "a.txt\nsub/b.txt\nsub/deep/c.rs\n"
    );
    assert_eq!(glob(json!({"pattern": "*.txt"})).await, "a.txt\n");
    assert_eq!(
        glob(json!({"pattern": "*.txt", "cwd": "sub"})).await,
        "sub/b.txt\n"
    );
    let absolute = place.root().join("sub/*.txt");
    assert_eq!(glob(json!({"pattern": absolute})).await, "sub/b.txt\n");
    assert_eq!(
        glob(json!({"pattern": "*.none"})).await,
        "No files fit this pattern.\n"
    );
    let error = place.error("Glob", json!({"pattern": "a{"})).await;
    assert!(error.contains("not a pattern"), "{error}");
}

#[tokio::test]
async fn grep_finds_lines_names_and_counts() {
    let place = Place::new();
    let grep = async |input: Value| place.text("Grep", input).await;
    assert_eq!(
        grep(json!({"pattern": "two"})).await,
        "a.txt:2:two\nsub/deep/c.rs:1:fn two() {}\n"
    );
    assert_eq!(
        grep(
            json!({"pattern": "two", "case_insensitive": true, "output_mode": "files_with_matches"})
        )
        .await,
        "a.txt\nsub/b.txt\nsub/deep/c.rs\n"
    );
    assert_eq!(
        grep(json!({"pattern": "e", "output_mode": "count", "glob": "*.txt"})).await,
        "a.txt:2\n"
    );
    assert_eq!(
        grep(json!({"pattern": "t", "path": "sub/deep"})).await,
        "sub/deep/c.rs:1:fn two() {}\n"
    );
    assert_eq!(
        grep(json!({"pattern": "^t", "path": "a.txt"})).await,
        "a.txt:2:two\na.txt:3:three\n"
    );
    put(&place.root().join("binary"), "two\0");
    let long = format!("{}two", "x".repeat(2 << 20));
    put(&place.root().join("long"), &format!("{long}\nxtwo\n"));
    let found = grep(json!({"pattern": "xtwo"})).await;
    assert!(found.starts_with("long:2:xtwo\n"), "{found}");
    assert!(found.contains("1 files that are not text"), "{found}");
    assert!(found.contains("1 lines are longer"), "{found}");
    put(&place.root().join("many"), &"m\n".repeat(10_001));
    let found = grep(json!({"pattern": "^m$"})).await;
    assert_eq!(
        found.lines().filter(|it| it.ends_with(":m")).count(),
        10_000
    );
    assert!(
        found.contains("There is more than 10000"),
        "the cap is said"
    );
    let error = place.error("Grep", json!({"pattern": "("})).await;
    assert!(error.contains("not a regular expression"), "{error}");
}

#[tokio::test]
async fn bash_runs_in_the_root_and_gives_output_and_exit_code() {
    let place = Place::new();
    let real = place.root().canonicalize().unwrap();
    let text = place.text("Bash", json!({"command": "pwd"})).await;
    assert_eq!(text.trim_end(), real.display().to_string());
    let text = place
        .text("Bash", json!({"command": "pwd", "cwd": "sub/deep"}))
        .await;
    assert_eq!(text.trim_end(), real.join("sub/deep").display().to_string());
    let outcome = place
        .call("Bash", json!({"command": "echo out; echo err >&2; exit 3"}))
        .await;
    assert_eq!(outcome.error.as_deref(), Some("exit code 3"));
    let text = outcome.output.as_str().unwrap();
    assert!(text.contains("out\n") && text.contains("err\n"), "{text}");
    assert!(text.ends_with("[exit code 3]"), "{text}");
    let outcome = place
        .call(
            "Bash",
            json!({"command": "echo before; sleep 60", "timeout_seconds": 0.2}),
        )
        .await;
    assert!(outcome.error.unwrap().contains("200ms"));
    assert!(outcome.output.as_str().unwrap().starts_with("before\n"));
}

#[tokio::test]
async fn a_command_cannot_ask_for_more_time_than_it_may_have() {
    let place = Place::new();
    let options = Options {
        longest_command: Duration::from_millis(300),
        ..Options::default()
    };
    let tools = Builtins::new(&place.root(), options).unwrap();
    let router = Router::new(vec![Arc::new(tools)]);
    let never = CancellationToken::new();
    for input in [
        json!({"command": "echo before; sleep 67"}),
        json!({"command": "echo before; sleep 67", "timeout_seconds": 1e300}),
    ] {
        let call = request("Bash", input);
        let outcome = router.call(call, &Told::default(), &never).await;
        assert!(outcome.error.unwrap().contains("300ms"));
        assert!(outcome.output.as_str().unwrap().starts_with("before\n"));
    }
}

#[tokio::test]
async fn output_without_end_is_kept_at_both_ends() {
    let place = Place::new();
    let command = "echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo last";
    let text = place.text("Bash", json!({"command": command})).await;
    assert!(text.starts_with("first\n") && text.ends_with("\nlast\n"));
    assert!(text.len() < (1 << 20) + 100, "{}", text.len());
    assert!(text.contains("bytes were left out here]"));
}

#[tokio::test]
async fn cancelling_ends_a_command_with_what_it_started() {
    let place = Place::new();
    let cancel = CancellationToken::new();
    let told = Told::default();
    let router = place.router();
    let command = "sh -c 'echo $$ > pid; exec sleep 71' & wait";
    let pid_file = place.root().join("pid");
    let began = Instant::now();
    let (outcome, pid) = tokio::join!(
        router.call(request("Bash", json!({"command": command})), &told, &cancel),
        async {
            let pid = loop {
                let pid = std::fs::read_to_string(&pid_file).unwrap_or_default();
                if pid.ends_with('\n') {
                    break pid.trim().to_owned();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            };
            cancel.cancel();
            pid
        },
    );
    assert_eq!(outcome.error.as_deref(), Some("cancelled"));
    assert_eq!(told.names().last().map(String::as_str), Some("result"));
    loop {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{state}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Where the kernel has landlock, a command cannot write outside; elsewhere an event says so.
#[tokio::test]
async fn a_command_cannot_write_outside_or_an_event_says_that_it_can() {
    // Not in the directory for temporary files, which commands may write to.
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let dir = tempfile::tempdir_in(base).unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let tools = Builtins::new(&root, Options::default()).unwrap();
    let router = Router::new(vec![Arc::new(tools)]);
    let told = Told::default();
    let never = CancellationToken::new();
    let command = "echo in > inside && echo tmp > \"$(mktemp)\" && echo null > /dev/null && cat /etc/passwd > copy && echo out > ../outside";
    let call = request("Bash", json!({"command": command}));
    let outcome = router.call(call, &told, &never).await;
    assert!(root.join("inside").exists(), "{outcome:?}");
    assert!(root.join("copy").exists(), "{outcome:?}");
    let said = told
        .names()
        .contains(&"guardrail/sandbox_unavailable".to_owned());
    assert_eq!(dir.path().join("outside").exists(), said, "{outcome:?}");
    assert_eq!(outcome.error.is_none(), said, "{outcome:?}");
    // The process itself is not confined.
    put(&dir.path().join("mine"), "x");
}
