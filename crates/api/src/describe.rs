//! Types that say what they look like as JSON, for the documentation.

/// Declares a document: the type, and its description for docs/json.md from the same comments.
///
/// - `struct`: an object.
/// - `words enum`: one of a few texts.
/// - `keyed enum`: an object with exactly one of the keys.
/// - `either enum`: one of several objects.
macro_rules! document {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            $($(#[doc = $doc:literal])+ $(#[serde($rule:ident $($how:tt)*)])? pub $field:ident: $shape:ty,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub struct $name {
            $($(#[doc = $doc])+ $(#[serde($rule $($how)*)])? pub $field: $shape,)+
        }

        #[cfg(test)]
        impl $crate::describe::Described for $name {
            fn describe(book: &mut $crate::describe::Book) -> String {
                book.put(stringify!($name), concat!($($about),+), |book| {
                    $(
                        let rules: &[&str] = &[$(stringify!($rule))?];
                        let shape = <$shape>::describe(book);
                        book.field(stringify!($field), rules, shape, concat!($($doc),+));
                    )+
                })
            }
        }
    };
    (
        $(#[doc = $about:literal])+
        pub words enum $name:ident { $($(#[doc = $doc:literal])+ $word:ident,)+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[doc = $doc])+ $word,)+ }

        #[cfg(test)]
        impl $crate::describe::Described for $name {
            fn describe(book: &mut $crate::describe::Book) -> String {
                book.put(stringify!($name), concat!($($about),+), |book| {
                    $(book.word($name::$word, concat!($($doc),+));)+
                })
            }
        }
    };
    (
        $(#[doc = $about:literal])+
        pub keyed enum $name:ident { $($(#[doc = $doc:literal])+ $key:ident($shape:ty),)+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[doc = $doc])+ $key($shape),)+ }

        #[cfg(test)]
        impl $crate::describe::Described for $name {
            fn describe(book: &mut $crate::describe::Book) -> String {
                book.put(stringify!($name), concat!($($about),+), |book| {
                    $(
                        let shape = <$shape>::describe(book);
                        let key = stringify!($key).to_lowercase();
                        book.field(&key, &["skip_serializing_if"], shape, concat!($($doc),+));
                    )+
                })
            }
        }
    };
    (
        $(#[doc = $about:literal])+
        pub either enum $name:ident { $($(#[doc = $doc:literal])+ $one:ident($shape:ty),)+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(untagged)]
        pub enum $name { $($(#[doc = $doc])+ $one($shape),)+ }

        #[cfg(test)]
        impl $crate::describe::Described for $name {
            fn describe(book: &mut $crate::describe::Book) -> String {
                [$(<$shape>::describe(book)),+].join(" or ")
            }
        }
    };
}

pub(crate) use document;

#[cfg(test)]
pub(crate) use book::{Book, Described};

#[cfg(test)]
mod book {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;

    use serde::Serialize;
    use serde_json::Value;

    use crate::{Time, Usd};

    /// Has a description.
    pub(crate) trait Described {
        /// Puts what it consists of into the book, and says what to call it in a table.
        fn describe(book: &mut Book) -> String;
    }

    /// The types that were described, in the order in which they were met.
    #[derive(Default)]
    pub(crate) struct Book {
        pages: Vec<Page>,
        /// The types whose fields are being described: indexes of `pages`.
        open: Vec<usize>,
    }

    struct Page {
        name: &'static str,
        about: &'static str,
        head: &'static str,
        rows: String,
    }

    impl Book {
        pub(crate) fn put(
            &mut self,
            name: &'static str,
            about: &'static str,
            body: impl FnOnce(&mut Self),
        ) -> String {
            let link = format!("[{name}](#{})", name.to_lowercase());
            if let Some(page) = self.pages.iter().find(|page| page.name == name) {
                assert_eq!(page.about, about, "two types have the name {name}");
                return link;
            }
            self.open.push(self.pages.len());
            self.pages.push(Page {
                name,
                about,
                head: "",
                rows: String::new(),
            });
            body(self);
            self.open.pop();
            link
        }

        pub(crate) fn field(&mut self, name: &str, rules: &[&str], shape: String, about: &str) {
            let name = name.trim_start_matches("r#");
            let name = if rules.contains(&"flatten") {
                "every field of".to_owned()
            } else {
                format!("`{name}`")
            };
            let shape = if rules.contains(&"skip_serializing_if") {
                let shape = shape.strip_suffix(" or null").unwrap_or(&shape);
                format!("{shape}; may be absent")
            } else {
                shape
            };
            let head = "| field | | |\n|---|---|---|\n";
            self.row(head, format_args!("| {name} | {shape} |{} |", cell(about)));
        }

        pub(crate) fn word(&mut self, word: impl Serialize, about: &str) {
            let word = serde_json::to_value(word).expect("a word is a text");
            let word = word.as_str().expect("a word is a text");
            let head = "| text | |\n|---|---|\n";
            self.row(head, format_args!("| `{word}` |{} |", cell(about)));
        }

        fn row(&mut self, head: &'static str, row: std::fmt::Arguments<'_>) {
            let page = *self.open.last().expect("a type is being described");
            let page = &mut self.pages[page];
            page.head = head;
            writeln!(page.rows, "{row}").expect("a text takes everything");
        }

        /// All types, with their tables.
        pub(crate) fn write(&self) -> String {
            let mut pages: Vec<&Page> = self.pages.iter().collect();
            pages.sort_by_key(|page| page.name);
            let mut text = String::new();
            for page in pages {
                let Page {
                    name,
                    about,
                    head,
                    rows,
                } = page;
                write!(text, "\n### {name}\n\n{}\n\n{head}{rows}", about.trim())
                    .expect("a text takes everything");
            }
            text
        }
    }

    /// A text as it can be in a table.
    fn cell(text: &str) -> String {
        text.replace('|', "\\|")
    }

    macro_rules! plain {
        ($($shape:ty = $name:literal,)+) => {
            $(impl Described for $shape {
                fn describe(_: &mut Book) -> String {
                    $name.to_owned()
                }
            })+
        };
    }

    plain! {
        bool = "true or false",
        f64 = "number",
        i64 = "number",
        u64 = "number",
        String = "text",
        Time = "time",
        Usd = "dollars",
        Value = "object",
    }

    impl<T: Described> Described for Option<T> {
        fn describe(book: &mut Book) -> String {
            format!("{} or null", T::describe(book))
        }
    }

    impl<T: Described> Described for Vec<T> {
        fn describe(book: &mut Book) -> String {
            format!("list of {}", T::describe(book))
        }
    }

    impl<T: Described, const N: usize> Described for [T; N] {
        fn describe(book: &mut Book) -> String {
            format!("list of {N} × {}", T::describe(book))
        }
    }

    impl<T: Described> Described for BTreeMap<String, T> {
        fn describe(book: &mut Book) -> String {
            format!("object: {} by name", T::describe(book))
        }
    }

    impl<T: Described> Described for Box<T> {
        fn describe(book: &mut Book) -> String {
            T::describe(book)
        }
    }
}
