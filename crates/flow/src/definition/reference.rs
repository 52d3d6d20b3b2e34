//! The table of keys in `docs/workflow-reference.md`, held against the one that the loader has.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use super::check::{CONTEXT_FIELDS, ERROR_FIELDS, LOOP_FIELDS, STATE_FIELDS, WORKFLOW_FIELDS};
use super::keys::{CUSTOM, KINDS, Key, OBJECTS, Shape};
use super::places::Places;

const BEGIN: &str = "<!-- keys -->\n";
const END: &str = "<!-- /keys -->";

fn tables() -> String {
    let mut out = String::new();
    for object in OBJECTS {
        table(&mut out, &heading(object.name), "", object.keys);
    }
    out.push_str("### Kinds of step\n\n`type` is read in any case; `step` is `command`. A kind with a dot in its name comes from a plugin.\n\n");
    for kind in KINDS {
        let about = format!("{}\n\n", kind.about);
        table(
            &mut out,
            &format!("`{}`", kind.name),
            &about,
            kind.object.keys,
        );
    }
    table(&mut out, "Kinds of plugins", "", CUSTOM.keys);
    out
}

/// What an object is called on the page.
fn heading(name: &str) -> String {
    match name {
        "workflow" => "The file".to_owned(),
        "input" => "One of `inputs`".to_owned(),
        "validation" => "`validation` of an input".to_owned(),
        "step" => "Every step".to_owned(),
        "on_failure" => "`on_failure` as a map".to_owned(),
        "transition" => "One of `transitions`".to_owned(),
        "workflow hooks" => "`hooks` of the workflow".to_owned(),
        "step hooks" => "`hooks` of a step".to_owned(),
        "hook" => "One hook".to_owned(),
        "budget" => "`budget_usd` as a map".to_owned(),
        "skill" => "One of `skills` as a map".to_owned(),
        "check" => "One of `checks` as a map".to_owned(),
        "plugin tools" => "One of `plugin_tools`".to_owned(),
        "MCP server" => "One of `mcp_servers`".to_owned(),
        "step template" => "A step template".to_owned(),
        "template parameter" => "One of the parameters of a step template".to_owned(),
        name => format!("`{name}`"),
    }
}

fn table(out: &mut String, heading: &str, about: &str, keys: &[Key]) {
    write!(
        out,
        "### {heading}\n\n{about}| key | value | what |\n|---|---|---|\n"
    )
    .unwrap();
    for key in keys {
        writeln!(
            out,
            "| `{}` | {} | {} |",
            key.name,
            value(&key.shape),
            key.about
        )
        .unwrap();
    }
    out.push('\n');
}

fn value(shape: &Shape) -> String {
    match shape {
        Shape::Text => "text".to_owned(),
        Shape::Template => "template".to_owned(),
        Shape::Expression => "expression".to_owned(),
        Shape::Step => "step".to_owned(),
        Shape::Bool => "boolean".to_owned(),
        Shape::Whole(least, most) if *most >= i64::from(u32::MAX) => {
            if *least == i64::MIN {
                "whole number".to_owned()
            } else {
                format!("whole number from {least}")
            }
        }
        Shape::Whole(least, most) => format!("whole number, {least} to {most}"),
        Shape::Number(least, most) if *most >= f64::MAX => format!("number from {least}"),
        Shape::Number(least, most) => format!("number, {least} to {most}"),
        Shape::Duration => "duration".to_owned(),
        Shape::Words(words) => words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", "),
        Shape::Object(_) => "map".to_owned(),
        Shape::MapOf(inner) => match inner {
            Shape::Any | Shape::Object(_) => "map".to_owned(),
            inner => format!("map of {}s", value(inner)),
        },
        Shape::List(inner) => match inner {
            Shape::Any => "list".to_owned(),
            Shape::Either(_) => format!("list of {}", value(inner)),
            inner => format!("list of {}s", value(inner)),
        },
        Shape::Either(shapes) => {
            let mut words: Vec<String> = shapes.iter().map(value).collect();
            words.dedup();
            words.join(" or ")
        }
        Shape::Any => "anything".to_owned(),
        Shape::Schema => "JSON Schema".to_owned(),
    }
}

#[test]
fn the_reference_page_has_the_keys_that_the_loader_knows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workflow-reference.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page
        .split_once(BEGIN)
        .expect("the page has a place for keys");
    let (kept, after) = rest.split_once(END).expect("the place for keys has an end");
    let made = tables();
    if std::env::var_os("QUIPU_BLESS").is_some() {
        let mut file = std::fs::File::create(&path).unwrap();
        write!(file, "{before}{BEGIN}{made}{END}{after}").unwrap();
        return;
    }
    assert!(
        kept == made,
        "docs/workflow-reference.md is old; run this test with QUIPU_BLESS=1"
    );
}

#[test]
fn the_reference_page_names_every_field_and_function() {
    let page = include_str!("../../../../docs/workflow-reference.md");
    let fields = STATE_FIELDS
        .iter()
        .chain(&WORKFLOW_FIELDS)
        .chain(&CONTEXT_FIELDS)
        .chain(&LOOP_FIELDS)
        .chain(&ERROR_FIELDS)
        .chain(&Places::AWF)
        .chain(&crate::template::FUNCTIONS);
    for name in fields {
        let named = page.contains(&format!("`{name}`")) || page.contains(&format!("`{name} "));
        assert!(named, "{name} is not on the page");
    }
}
