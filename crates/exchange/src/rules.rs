//! Rules of a format, as a table: what is checked, how much it matters, and what to do about it.

/// The rules themselves: their names are stable.
#[macro_export]
macro_rules! names {
    ($($(#[doc = $doc:literal])* $rule:ident = $name:literal,)+) => {
        /// What is checked. The first line of each is its meaning; its name is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule { $($(#[doc = $doc])* $rule,)+ }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$rule,)+];

            /// The rule's stable name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$rule => $name,)+ }
            }

            /// What it says is wrong.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$rule => concat!($($doc),*).trim_ascii_start(),)+ }
            }
        }
    };
}

/// A table of rules: name, severity, and what to do about it where there is something.
#[macro_export]
macro_rules! rules {
    ($($(#[doc = $doc:literal])* $rule:ident = $name:literal, $severity:ident $(, $hint:literal)?;)+) => {
        $crate::names! { $($(#[doc = $doc])* $rule = $name,)+ }

        impl Rule {
            /// How much breaking it matters.
            pub const fn severity(self) -> $crate::verify::Severity {
                match self { $(Self::$rule => $crate::verify::Severity::$severity,)+ }
            }

            /// What to do about it, where there is something.
            pub const fn hint(self) -> Option<&'static str> {
                match self { $(Self::$rule => [$(Some($hint),)? None][0],)+ }
            }
        }
    };
}
