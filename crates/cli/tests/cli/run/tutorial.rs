//! `docs/workflows.md`, tried word for word by somebody who has just installed Quipu.

use super::{Project, claude_says, repository};

/// Whether a line is as the page has it; `…` is anything.
fn fits(line: &str, page: &str) -> bool {
    let parts: Vec<&str> = page.split('…').collect();
    let Some((first, rest)) = parts.split_first() else {
        return line.is_empty();
    };
    let Some(mut left) = line.strip_prefix(first) else {
        return false;
    };
    let Some((last, middle)) = rest.split_last() else {
        return left.is_empty();
    };
    for part in middle {
        let Some(at) = left.find(part) else {
            return false;
        };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// Whether a page shows what was printed. A line that is `…` stands for any number of lines.
fn shows(printed: &str, page: &str) -> bool {
    let (printed, page): (Vec<&str>, Vec<&str>) =
        (printed.lines().collect(), page.lines().collect());
    let mut reached = vec![false; printed.len() + 1];
    reached[0] = true;
    for line in &page {
        let mut next = vec![false; printed.len() + 1];
        for at in 0..=printed.len() {
            if *line == "…" {
                next[at] = reached[at] || (at > 0 && next[at - 1]);
            } else if at > 0 {
                next[at] = reached[at - 1] && fits(printed[at - 1].trim_end(), line.trim_end());
            }
        }
        reached = next;
    }
    reached[printed.len()]
}

#[test]
fn a_page_shows_what_was_printed_with_gaps() {
    assert!(shows("a 1 b\nc\n", "a … b\nc"));
    assert!(shows("a\nb\nc\n", "a\n…\nc"));
    assert!(shows("a\nc\n", "a\n…\nc"));
    assert!(!shows("a\nb\n", "a"));
    assert!(!shows("a 1 c\n", "a … b"));
}

#[test]
fn the_tutorial_does_what_it_says() {
    let page = std::fs::read_to_string(repository().join("docs/workflows.md")).unwrap();
    let project = Project::empty();
    project.agent(
        "claude",
        &[(
            "JSON",
            &claude_says(r#"{"risk": "low", "why": "It is a greeting."}"#),
            0,
        )],
        claude_says("A friendly greeting.").as_bytes(),
    );
    let (mut before, mut token, mut id, mut printed) =
        (String::new(), String::new(), String::new(), None::<String>);
    let mut lines = page.lines();
    let mut tried = 0;
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            if !line.is_empty() {
                line.clone_into(&mut before);
            }
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let block = block.join("\n") + "\n";
        match kind {
            "yaml" => {
                let name = before
                    .rsplit('`')
                    .nth(1)
                    .unwrap_or_else(|| panic!("{before:?} names a file"));
                project.file(name, &block);
            }
            "sh" => {
                let ran = project.shell(&format!(
                    "exec 2>&1\n{}",
                    block.replace("TOKEN", &token).replace("ID", &id)
                ));
                if let Some(run) = ran
                    .stdout
                    .lines()
                    .filter_map(|line| line.strip_prefix("run "))
                    .next_back()
                {
                    run.chars().take(8).collect::<String>().clone_into(&mut id);
                }
                if let Some(given) = ran.stdout.split("--approve ").nth(1) {
                    given
                        .split(|c: char| !c.is_ascii_hexdigit())
                        .next()
                        .unwrap()
                        .clone_into(&mut token);
                }
                printed = Some(ran.stdout);
                tried += 1;
            }
            "text" => {
                let printed = printed
                    .take()
                    .unwrap_or_else(|| panic!("nothing was run before\n{block}"));
                assert!(
                    shows(&printed, &block),
                    "the page has\n{block}\nit prints\n{printed}"
                );
            }
            other => panic!("a block of {other:?}"),
        }
    }
    assert!(tried >= 18, "{tried} commands");
    project.verified("the tutorial");
}
