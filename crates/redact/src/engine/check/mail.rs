//! Addresses for mail that belong to somebody.

use super::ValueInText;

/// Hosts that exist for examples, or for machines.
const NOBODY: &[&str] = &[
    "example.com",
    "example.org",
    "example.net",
    "example.edu",
    "domain.com",
    "email.com",
    "yourdomain.com",
    "yourcompany.com",
    "company.com",
    "users.noreply.github.com",
    "noreply.github.com",
    "localhost",
    "sentry.io",
    "schema.org",
    "test.com",
    "acme.com",
    "mycompany.com",
];
/// Ends of hosts that are reserved, and ends of files.
const NO_HOST: &[&str] = &[
    "test",
    "invalid",
    "localhost",
    "example",
    "local",
    "internal",
    "lan",
    "png",
    "jpg",
    "jpeg",
    "gif",
    "svg",
    "webp",
    "js",
    "ts",
    "mjs",
    "cjs",
    "tsx",
    "jsx",
    "json",
    "css",
    "py",
    "rb",
    "go",
    "rs",
    "java",
    "php",
    "md",
    "html",
    "yml",
    "yaml",
    "toml",
    "lock",
    "so",
    "dll",
    "service",
    "socket",
    "timer",
    "target",
    "git",
    "txt",
    "zip",
    "gz",
    "sh",
];
/// Names of nobody in particular.
const NO_NAME: &[&str] = &[
    "noreply",
    "openhands",
    "cursoragent",
    "no-reply",
    "donotreply",
    "do-not-reply",
    "git",
    "user",
    "you",
    "your",
    "name",
    "email",
    "your.email",
    "your-email",
    "youremail",
    "foo",
    "bar",
    "test",
    "someone",
    "username",
    "example",
    "user1",
    "user2",
    "john.doe",
    "jane.doe",
    "me",
    "root",
    "postgres",
];

/// An address of a person or of a place with people.
pub(super) fn mail(place: &ValueInText<'_>) -> bool {
    let lower = place.value.to_ascii_lowercase();
    let Ok(text) = std::str::from_utf8(&lower) else {
        return false;
    };
    let Some((name, host)) = text.rsplit_once('@') else {
        return false;
    };
    let end = host.rsplit('.').next().unwrap_or_default();
    let labels = host.split('.').count();
    let named = name.trim_matches('.');
    let host_is_one = labels >= 2
        && (2..=63).contains(&end.len())
        && (end.starts_with("xn--")
            || end
                .chars()
                .all(|letter| letter.is_lowercase() || !letter.is_ascii()))
        && !NO_HOST.contains(&end)
        && host
            .split('.')
            .all(|label| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-'));
    let nobody = NOBODY.iter().any(|known| {
        host.strip_suffix(known)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    // `git@host:path`, `user:password@host`, `package@1.2.x`, `@scope/x@y`.
    let behind = place.first_behind();
    let remote = behind == b':'
        && place
            .behind
            .get(1)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'~'));
    let url = place.before.ends_with(b"//")
        || matches!(place.last_before(), b':' | b'/' | b'@') && !place.before.ends_with(b"mailto:");
    host_is_one
        && !nobody
        && !NO_NAME.contains(&named)
        && !name.contains("noreply")
        && !name.contains("no-reply")
        && !remote
        && !(url && place.after_one_of(&["://"], 80) && !place.after_one_of(&["mailto:"], 8))
        && !matches!(behind, b'/' | b'(' | b'@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_people() {
        for (before, value, behind, expected) in [
            ("", "ada@lovelace.dev", "", true),
            ("<", "ada.l+x@mail.lovelace.co.uk", ">", true),
            ("mailto:", "ada@lovelace.dev", "", true),
            ("", "git@github.com", ":a/b.git", false),
            ("", "noreply@anthropic.com", "", false),
            ("", "1+ada@users.noreply.github.com", "", false),
            ("", "ada@example.com", "", false),
            ("", "ada@sub.example.org", "", false),
            ("", "icon@2x.png", "", false),
            ("", "left-pad@1.x", "", false),
            ("", "ada@machine.local", "", false),
            ("https://x:", "y@host.com", "/p", false),
            ("", "getty@tty1.service", "", false),
            ("", "jörg@münchen.de", "", true),
            ("", "анна@почта.рф", "", true),
            ("", "张伟@例子.公司", "", true),
            ("", "ada@xn--bcher-kva.xn--p1ai", "", true),
            ("", "x@2.3", "", false),
        ] {
            let text = format!("{before}{value}{behind}");
            let place = ValueInText::new(text.as_bytes(), before.len()..before.len() + value.len());
            assert_eq!(mail(&place), expected, "{text}");
        }
    }
}
