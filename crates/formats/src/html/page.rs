//! The parts of a page.
//!
//! `page/` holds them as the files they are: `page.html` with places for the rest, `page.css`, and the script as modules by
//! topic. The server serves most of the modules as they are; here they are joined to one script.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// The ids of the blocks.
pub(super) const TRANSCRIPT: &str = "quipu-transcript";
pub(super) const IMAGES: &str = "quipu-images";
pub(super) const SEALED: &str = "quipu-sealed";
pub(super) const SEALED_TRANSCRIPT: &str = "quipu-sealed-transcript";
pub(super) const SEALED_IMAGES: &str = "quipu-sealed-images";

macro_rules! module {
    ($name:literal) => {
        Module {
            name: $name,
            text: include_str!(concat!("page/", $name)),
        }
    };
}

const TEMPLATE: &str = include_str!("page/page.html");
/// The modules that the exported page and the served one share, in the order in which they need each other.
pub const MODULES: &[Module] = &[
    module!("text.js"),
    module!("markdown.js"),
    module!("tools.js"),
    module!("output.js"),
    module!("model.js"),
    module!("view.js"),
    module!("pages.js"),
    module!("session.js"),
    module!("search.js"),
    module!("print.js"),
];

/// What only the exported page has.
const OWN: &[Module] = &[module!("seal.js"), module!("page.js")];

/// The style that both pages share.
pub const STYLE: &str = include_str!("page/page.css");

/// A module of the page's script.
#[derive(Debug, Clone, Copy)]
pub struct Module {
    /// The name that other modules import it by.
    pub name: &'static str,
    /// What it says.
    pub text: &'static str,
}

/// The script of the exported page: its modules as one function, so that nothing of them is global. A page that is opened from
/// disk cannot import.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let mut script = String::from("(() => {\n\"use strict\";\n");
    for module in MODULES.iter().chain(OWN) {
        for line in module
            .text
            .lines()
            .filter(|line| !line.starts_with("import "))
        {
            script.push_str(line.strip_prefix("export ").unwrap_or(line));
            script.push('\n');
        }
    }
    script.push_str("})();\n");
    script
});

/// What stands before the blocks.
pub(super) fn begin(out: &mut Vec<u8>, title: &str) {
    let (before, _) = halves();
    let before = before
        .replace("{{csp}}", &policy())
        .replace("{{style}}", STYLE)
        .replace("{{title}}", &escape(title));
    out.extend_from_slice(before.as_bytes());
}

/// What stands behind them.
pub(super) fn end(out: &mut Vec<u8>) {
    let (_, behind) = halves();
    out.extend_from_slice(behind.replace("{{script}}", &SCRIPT).as_bytes());
}

/// The beginning of a block.
pub(super) fn open_block(out: &mut Vec<u8>, id: &str) {
    out.extend_from_slice(opening(id).as_bytes());
}

/// The tag that opens a block.
pub(super) fn opening(id: &str) -> String {
    format!("<script type=\"application/json\" id=\"{id}\">")
}

/// The end of a block.
pub(super) fn close_block(out: &mut Vec<u8>) {
    out.extend_from_slice(b"</script>\n");
}

/// A whole block. Its text must hold nothing that ends it.
pub(super) fn block(out: &mut Vec<u8>, id: &str, text: &[u8]) {
    open_block(out, id);
    out.extend_from_slice(text);
    close_block(out);
}

fn halves() -> (&'static str, &'static str) {
    TEMPLATE.split_once("{{data}}").unwrap_or((TEMPLATE, ""))
}

/// What the page may do: run its script, use its style, show pictures that are in it. Strings cannot become HTML.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash(&SCRIPT),
        hash(STYLE)
    )
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// Text in HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A page with names in place of the style, the script and their hashes, which are files of their own.
#[cfg(test)]
pub(super) fn without_assets(page: &[u8]) -> Vec<u8> {
    let page = String::from_utf8(page.to_vec()).unwrap();
    page.replace(SCRIPT.as_str(), "{{script}}")
        .replace(STYLE, "{{style}}")
        .replace(&hash(&SCRIPT), "{{hash of script}}")
        .replace(&hash(STYLE), "{{hash of style}}")
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_hold_nothing_that_would_end_them() {
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"));
        assert!(!STYLE.contains("</style"));
        let whole = TEMPLATE;
        for place in [
            "{{csp}}",
            "{{style}}",
            "{{title}}",
            "{{data}}",
            "{{script}}",
        ] {
            assert_eq!(whole.matches(place).count(), 1, "{place}");
        }
        for part in [STYLE, &SCRIPT] {
            assert!(!part.contains("{{title}}") && !part.contains("{{script}}"));
        }
    }

    #[test]
    fn no_sink_for_html_and_nothing_that_asks_a_network() {
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "createContextualFragment",
            "srcdoc",
            "eval(",
            "new Function",
            "setTimeout(\"",
            "fetch(",
            "XMLHttpRequest",
            "WebSocket",
            "EventSource",
            "sendBeacon",
            "import(",
            "localStorage",
            "sessionStorage",
            "url(",
            "@import",
            " on",
        ] {
            // In a handler's place only: ` onclick=`, not the word.
            let found = match word {
                " on" => ["onclick=", "onload=", "onerror="].iter().any(|word| {
                    [&SCRIPT, STYLE, TEMPLATE]
                        .iter()
                        .any(|it| it.contains(word))
                }),
                word => SCRIPT.contains(word) || STYLE.contains(word) || TEMPLATE.contains(word),
            };
            assert!(!found, "{word}");
        }
    }
}
