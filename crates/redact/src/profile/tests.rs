//! The built-in profiles, those of users, and the table in the documentation.

use std::fmt::Write as _;
use std::path::Path;

use quipu_formats::normalized::ToolOutput;

use super::*;

#[test]
fn all_that_are_built_in_can_be_read() {
    for name in Profile::NAMES {
        let profile = Profile::builtin(name).unwrap_or_else(|| panic!("{name} cannot be read"));
        assert_eq!(profile.name, *name);
        assert!(!profile.description.is_empty(), "{name}");
        assert_eq!(profile.identity_linked, *name == "hiring-signal", "{name}");
        assert_eq!(profile.changes_nothing(), *name == "local", "{name}");
    }
    assert_eq!(Profile::builtin("nobody"), None);
}

#[test]
fn what_a_file_does_not_say_is_as_in_what_it_extends() {
    let parse = |text: &str| Profile::parse(text, Path::new("mine.toml"));
    let mine =
        parse("extends = \"team\"\nrules-off = [\"ipv4\", \"chat\"]\nmax-events = 0\n").unwrap();
    assert_eq!(mine.name, "mine");
    assert_eq!(mine.kinds, [Kind::Secret, Kind::Pii]);
    assert_eq!(mine.max_events, u64::MAX);
    let public = parse("name = \"careful\"\ntimes = \"relative\"").unwrap();
    assert_eq!(
        (public.reasoning, public.tool_output),
        (false, ToolOutput::MetadataOnly)
    );
    assert_eq!(public.times, Times::Relative);
    let rule = |id: &str, group: &str, kind| Rule {
        group: group.to_owned(),
        ..Rule::new(id, kind, crate::rule::Pattern::File)
    };
    assert!(mine.wants(&rule("aws", "cloud", Kind::Secret)));
    assert!(!mine.wants(&rule("ipv4", "net", Kind::Pii)));
    assert!(!mine.wants(&rule("slack", "chat", Kind::Secret)));
    assert!(!mine.wants(&rule("home", "paths", Kind::Path)));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let wrong = |text: &str| {
        Profile::parse(text, Path::new("mine.toml"))
            .unwrap_err()
            .to_string()
    };
    let unknown = wrong("name = \"x\"\n\nresoning = false\n");
    assert!(
        unknown.starts_with("mine.toml:3: ") && unknown.contains("resoning"),
        "{unknown}"
    );
    let word = wrong("name = \"x\"\ntool-output = \"some\"\n");
    assert!(
        word.starts_with("mine.toml:2: ") && word.contains("some"),
        "{word}"
    );
    assert!(wrong("name = ").starts_with("mine.toml:1: "));
    let nobody = wrong("extends = \"nobody\"");
    assert!(nobody.contains("nobody"), "{nobody}");
    let missing = Profile::load(Path::new("/nowhere/x.toml"))
        .unwrap_err()
        .to_string();
    assert!(missing.contains("/nowhere/x.toml"), "{missing}");
}

#[test]
fn files_extend_files_and_not_themselves() {
    let folder = std::env::temp_dir().join(format!("quipu-profiles-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let put = |name: &str, text: &str| {
        let mut file = std::fs::File::create(folder.join(name)).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    };
    put("base.toml", "extends = \"local\"\nreasoning = false\n");
    put("mine.toml", "extends = \"base.toml\"\n");
    put("loop.toml", "extends = \"loop.toml\"\n");
    let mine = Profile::load(&folder.join("mine.toml")).unwrap();
    assert!(!mine.reasoning && mine.file_contents);
    let endless = Profile::load(&folder.join("loop.toml"))
        .unwrap_err()
        .to_string();
    assert!(endless.contains("loop.toml"), "{endless}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// One row per switch, one column per profile.
fn table() -> String {
    let profiles: Vec<Profile> = Profile::NAMES
        .iter()
        .filter_map(|name| Profile::builtin(name))
        .collect();
    let mut table = String::from("| |");
    for profile in &profiles {
        _ = write!(table, " {} |", profile.name);
    }
    table.push_str("\n|---|");
    table.push_str(&"---|".repeat(profiles.len()));
    table.push('\n');
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let cap = |n: u64| {
        if n == u64::MAX {
            "no limit".to_owned()
        } else {
            n.to_string()
        }
    };
    let mut row = |name: &str, cell: &dyn Fn(&Profile) -> String| {
        _ = write!(table, "| {name} |");
        for profile in &profiles {
            _ = write!(table, " {} |", cell(profile));
        }
        table.push('\n');
    };
    row("`kinds` of rules", &|it| {
        let words: Vec<&str> = it.kinds.iter().map(|kind| kind.as_str()).collect();
        if words.is_empty() {
            "none".to_owned()
        } else {
            words.join(", ")
        }
    });
    row("`reasoning`", &|it| yes(it.reasoning));
    row("`file-contents`", &|it| yes(it.file_contents));
    row("`text`", &|it| it.text.as_str().to_owned());
    row("`tool-input`", &|it| it.tool_input.as_str().to_owned());
    row("`tool-output`", &|it| it.tool_output.as_str().to_owned());
    row("`max-text`", &|it| cap(it.max_text as u64));
    row("`max-events`", &|it| cap(it.max_events));
    row("`max-bytes`", &|it| cap(it.max_bytes));
    row("`environment`", &|it| {
        format!("{:?}", it.environment).to_lowercase()
    });
    row("`times`", &|it| format!("{:?}", it.times).to_lowercase());
    row("`numbers`", &|it| {
        format!("{:?}", it.numbers).to_lowercase()
    });
    row("`pseudonyms`", &|it| {
        format!("{:?}", it.pseudonyms).to_lowercase()
    });
    row("`identity-linked`", &|it| yes(it.identity_linked));
    table
}

/// The documentation says what the files say. `QUIPU_BLESS=1` writes the table anew.
#[test]
fn the_table_in_the_documentation_is_what_the_profiles_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/profiles.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- table -->\n").expect("a mark");
    let (old, behind) = rest.split_once("<!-- end -->").expect("a mark at the end");
    if std::env::var_os("QUIPU_BLESS").is_some() {
        let new = format!("{before}<!-- table -->\n{}<!-- end -->{behind}", table());
        let mut file = std::fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut file, new.as_bytes()).unwrap();
    } else {
        assert_eq!(old, table(), "{}", path.display());
    }
}
