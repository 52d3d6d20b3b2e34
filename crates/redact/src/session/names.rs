//! The names of a session's surroundings, and what stands for them wherever they are met.

use std::ops::Range;

use memchr::memmem::Finder;
use quipu_model::Header;
use rustc_hash::FxHashMap;

use super::common::{is_common, is_everywhere};
use super::learn::Learned;
use super::review::{Name, NameOf};
use crate::profile::Environment;
use crate::{Key, is_placeholder};

/// Letters that a name has at least to be known inside of longer words, and when it is misspelled.
const DISTINCT: usize = 7;

/// The shortest name that is known as a part of a longer one.
const PART: usize = 4;

/// Names that are held at most.
const MOST: usize = 8192;

/// How sure it is that a name is the session's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    /// It was mentioned: it may be anybody's.
    Mentioned,
    /// It is the session's own: its parts are names as well.
    Own,
}

/// Names, and what stands for them.
#[derive(Debug, Default)]
pub(super) struct Names {
    all: Vec<Known>,
    /// Names by the first word of each, in lower case; the longest first.
    by_word: FxHashMap<String, Vec<usize>>,
    /// Those that are looked for inside of words, and misspelled.
    distinct: Vec<usize>,
}

#[derive(Debug)]
struct Known {
    /// In lower case.
    text: String,
    /// Bytes before its first word.
    lead: usize,
    of: NameOf,
    stands: String,
    whose: Whose,
    /// Whether it is known as a part of longer names, however short it is.
    is_loose: bool,
    finder: Finder<'static>,
}

/// Collects names before they are looked for.
struct Naming<'n> {
    names: &'n mut Names,
    known: FxHashMap<String, usize>,
    how: Environment,
    key: &'n Key,
}

impl Names {
    /// Those that a header tells, those that were learned from the events, and some more.
    pub(super) fn of(
        header: &Header,
        more: &[Name],
        learned: &Learned,
        how: Environment,
        key: &Key,
    ) -> Self {
        let mut names = Self::default();
        if how == Environment::Keep {
            return names;
        }
        let mut naming = Naming {
            names: &mut names,
            known: FxHashMap::default(),
            how,
            key,
        };
        naming.header(header);
        for name in more {
            naming.own(name.of, &name.text, &name.text.to_lowercase());
        }
        for (name, whose) in learned.names() {
            let whole = name.text.to_lowercase();
            match whose {
                _ if is_common(&name.text) => {}
                Whose::Own => naming.own(name.of, &name.text, &whole),
                Whose::Mentioned => naming.add(name.of, &name.text, &whole, whose),
            }
        }
        names.index();
        names
    }

    fn index(&mut self) {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(self.all[*index].text.len()));
        for index in order {
            let name = &self.all[index];
            let word = first_word(&name.text[name.lead..]);
            self.by_word.entry(word.to_owned()).or_default().push(index);
            let is_word = name.text.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if name.whose == Whose::Own && name.text.len() >= DISTINCT && is_word {
                self.distinct.push(index);
            }
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Where names are in a text, in order and without overlaps, and which.
    pub(super) fn find(&self, text: &str) -> Vec<(Range<usize>, usize)> {
        let mut found = Vec::new();
        if self.is_empty() || text.len() < 3 {
            return found;
        }
        // Lower case of ASCII letters only, so that places stay.
        let lower = text.to_ascii_lowercase();
        for word in words(text) {
            let said = &lower[word.clone()];
            if let Some(list) = self.by_word.get(first_word(said)) {
                let fits = |index: &&usize| self.at(text, &lower, word.start, **index);
                if let Some(index) = list.iter().find(fits) {
                    let name = &self.all[*index];
                    let start = word.start - name.lead;
                    found.push((start..start + name.text.len(), *index));
                    continue;
                }
            }
            if said.len() + 1 < DISTINCT {
                continue;
            }
            let near = |index: &&usize| is_near(said, &self.all[**index].text);
            if let Some(index) = self.distinct.iter().find(near)
                && !is_common(said)
            {
                found.push((word, *index));
            }
        }
        for index in &self.distinct {
            let name = &self.all[*index];
            let starts = name.finder.find_iter(lower.as_bytes());
            found.extend(starts.map(|start| (start..start + name.text.len(), *index)));
        }
        found.sort_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
        let mut end = 0;
        found.retain(|(span, _)| {
            let keep = span.start >= end;
            if keep {
                end = span.end;
            }
            keep
        });
        found
    }

    /// Whether a name is at a place of a text where a word begins.
    fn at(&self, text: &str, lower: &str, word: usize, index: usize) -> bool {
        let name = &self.all[index];
        let Some(start) = word.checked_sub(name.lead) else {
            return false;
        };
        let span = start..start + name.text.len();
        if lower.as_bytes().get(span.clone()) != Some(name.text.as_bytes()) {
            return false;
        }
        let is_strict = name.text.len() < PART && !name.is_loose || name.text.contains(['/', '\\']);
        if is_strict {
            is_word(text, &span)
        } else {
            is_part(text, &span)
        }
    }

    /// What a name is of, and what stands for it.
    pub(super) fn get(&self, index: usize) -> (NameOf, &str) {
        let name = &self.all[index];
        (name.of, &name.stands)
    }
}

impl Naming<'_> {
    fn header(&mut self, header: &Header) {
        let at = &header.environment;
        let log = header
            .origin
            .as_ref()
            .and_then(|origin| origin.path.as_deref());
        if let Some(cwd) = at.cwd.as_deref() {
            self.add(NameOf::Directory, cwd, cwd, Whose::Own);
            // How some agents name a folder after a directory.
            let folder = cwd.replace(['/', '.', '\\', ':', '_'], "-");
            if !is_stand_in(cwd) {
                self.add(NameOf::Directory, &folder, cwd, Whose::Own);
            }
        }
        if let Some(address) = at.repository.as_deref() {
            self.add(NameOf::Repository, address, address, Whose::Own);
            if let Some(slug) = slug(address) {
                self.add(NameOf::Repository, slug, address, Whose::Own);
                let (owner, name) = slug.rsplit_once('/').unwrap_or(("", slug));
                self.own(NameOf::Repository, name, address);
                self.own(NameOf::User, last(owner), &owner.to_lowercase());
            }
        }
        if let Some(cwd) = at.cwd.as_deref() {
            // What the project is called is mostly what its directory is.
            self.own(NameOf::Directory, last(cwd), cwd);
            let below = home_of(cwd).map_or("", |home| &cwd[home.end..]);
            let parts = below.split(['/', '\\']);
            for part in parts.filter(|part| part.len() >= PART && !is_common(part)) {
                self.add(
                    NameOf::Directory,
                    part,
                    &part.to_lowercase(),
                    Whose::Mentioned,
                );
            }
        }
        if let Some(branch) = at.git_branch.as_deref()
            && branch.bytes().any(|byte| !byte.is_ascii_alphabetic())
        {
            self.add(NameOf::Branch, branch, branch, Whose::Own);
        }
        for path in [at.cwd.as_deref(), log].into_iter().flatten() {
            if let Some(user) = home_of(path).map(|home| &path[home]) {
                self.own(NameOf::User, user, &user.to_lowercase());
            }
        }
    }

    /// A name of the session itself, with the names that are made of it. `whole` is what stands-ins are made of.
    fn own(&mut self, of: NameOf, text: &str, whole: &str) {
        // What stands for a name has no parts of its own.
        if is_stand_in(text) {
            return;
        }
        self.add(of, text, whole, Whose::Own);
        let parts = parts(text);
        if parts.len() < 2 {
            return;
        }
        for joint in ["", "-", "_", " ", "."] {
            self.add(of, &parts.join(joint), whole, Whose::Own);
        }
        // `omp` of `oh-my-posh`.
        if parts.len() >= 3 {
            let initials: String = parts
                .iter()
                .filter_map(|part| part.chars().next())
                .collect();
            if initials.bytes().all(|byte| byte.is_ascii_alphabetic()) && !is_common(&initials) {
                self.add(of, &initials, whole, Whose::Own);
                self.loose(&initials);
            }
        }
        for part in parts
            .iter()
            .filter(|part| part.len() >= PART && !is_common(part))
        {
            self.add(of, part, whole, Whose::Own);
        }
    }

    /// Lets a short name be known as a part of longer ones.
    fn loose(&mut self, text: &str) {
        if let Some(known) = self.known.get(&text.to_ascii_lowercase()) {
            self.names.all[*known].is_loose = true;
        }
    }

    fn add(&mut self, of: NameOf, text: &str, whole: &str, whose: Whose) {
        let lower = text.to_ascii_lowercase();
        let is_root = text.chars().all(|c| matches!(c, '/' | '\\' | '-' | '.'));
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        if text.len() < 3 || is_root || is_number || is_everywhere(text) || is_stand_in(text) {
            return;
        }
        let Some(lead) = text.find(|c: char| c.is_ascii_alphanumeric()) else {
            return;
        };
        if let Some(known) = self.known.get(&lower) {
            let known = &mut self.names.all[*known];
            known.whose = known.whose.max(whose);
            return;
        }
        let Some(stands) = stands_for(of, whole, self.how, self.key) else {
            return;
        };
        if self.names.all.len() >= MOST {
            return;
        }
        self.known.insert(lower.clone(), self.names.all.len());
        self.names.all.push(Known {
            finder: Finder::new(&lower).into_owned(),
            text: lower,
            lead,
            of,
            stands,
            whose,
            is_loose: false,
        });
    }
}

/// Words of a text: a word begins behind what is not a letter or digit, and at a capital behind a small letter.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let begins = move |at: usize| {
        let is = bytes[at].is_ascii_alphanumeric();
        let before = at.checked_sub(1).map(|at| bytes[at]);
        is && match before {
            None => true,
            Some(before) if !before.is_ascii_alphanumeric() => true,
            Some(before) => {
                before.is_ascii_lowercase() && bytes[at].is_ascii_uppercase()
                    || before.is_ascii_digit() && bytes[at].is_ascii_alphabetic()
            }
        }
    };
    let starts = (0..bytes.len()).filter(move |at| begins(*at));
    starts.map(move |at| {
        let length = bytes[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric())
            .count();
        at..at + length
    })
}

/// The letters and digits that a text begins with, up to where a word inside of it may end.
fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphabetic());
    match end.unwrap_or(text.len()) {
        0 => &text[..text.len().min(1)],
        end => &text[..end.min(3)],
    }
}

/// What a name is made of: `spectora`, `labs` and `app` of `spectora-labsApp`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for part in name.split(|c: char| !c.is_alphanumeric()) {
        let mut from = 0;
        let bytes = part.as_bytes();
        for at in 1..bytes.len() {
            if bytes[at - 1].is_ascii_lowercase() && bytes[at].is_ascii_uppercase() {
                parts.push(part[from..at].to_lowercase());
                from = at;
            }
        }
        parts.push(part[from..].to_lowercase());
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether two words differ by one letter that was added, left out or changed, or by two that changed places.
fn is_near(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len().abs_diff(other.len()) > 1 || one.first() != other.first() {
        return false;
    }
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (a, b) = (&one[same..], &other[same..]);
    let is_swapped =
        a.len() >= 2 && b.len() >= 2 && (a[0], a[1]) == (b[1], b[0]) && a[2..] == b[2..];
    match a.len().cmp(&b.len()) {
        std::cmp::Ordering::Equal => a.is_empty() || a[1..] == b[1..] || is_swapped,
        std::cmp::Ordering::Less => *a == b[1..],
        std::cmp::Ordering::Greater => a[1..] == *b,
    }
}

/// Whether what is around a name makes it a word of its own, or one of the words of a longer name.
fn is_part(text: &str, span: &Range<usize>) -> bool {
    let name = &text.as_bytes()[span.clone()];
    let before = text[..span.start].chars().next_back();
    let behind = text[span.end..].chars().next();
    let first = name.first().copied().unwrap_or_default();
    let last = name.last().copied().unwrap_or_default();
    let begins = before.is_none_or(|c| {
        !c.is_alphanumeric()
            || c.is_ascii_lowercase() && first.is_ascii_uppercase()
            || c.is_ascii_digit()
    });
    let ends = behind.is_none_or(|c| {
        !c.is_alphanumeric()
            || last.is_ascii_lowercase() && c.is_ascii_uppercase()
            || c.is_ascii_digit()
    });
    begins && ends
}

/// The last name of a path.
fn last(path: &str) -> &str {
    let path = path.trim_end_matches(['/', '\\']);
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// What stands for a name; `None` when it stays.
pub(super) fn stands_for(of: NameOf, name: &str, how: Environment, key: &Key) -> Option<String> {
    match how {
        Environment::Keep => None,
        Environment::Pseudonym => Some(key.pseudonym(of.word(), name)),
        Environment::Drop => Some(format!("[REDACTED:{}]", of.word())),
    }
}

/// Whether a text stands for a name already.
pub(super) fn is_stand_in(text: &str) -> bool {
    let is_pseudonym = text.split_once('_').is_some_and(|(word, hash)| {
        [
            "dir", "repo", "branch", "user", "host", "id", "hash", "ticket",
        ]
        .contains(&word)
            && hash.len() == 16
            && hash
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    });
    is_pseudonym || is_placeholder(text)
}

/// The owner and name of a repository, such as `ada/app`.
fn slug(address: &str) -> Option<&str> {
    let address = address.trim_end_matches('/').trim_end_matches(".git");
    let (before, _) = address.rsplit_once('/')?;
    let begin = before.rfind(['/', ':', '@']).map_or(0, |at| at + 1);
    (begin > 0 && before.len() > begin).then(|| &address[begin..])
}

/// Where in a path the name of the person is whose home it is in.
pub(super) fn home_of(path: &str) -> Option<Range<usize>> {
    let before = ["/home/", "/Users/", "\\Users\\", "/users/"]
        .into_iter()
        .find_map(|homes| {
            let rest = match path.as_bytes() {
                [drive, b':', ..] if drive.is_ascii_alphabetic() => path.get(2..)?,
                _ => path,
            };
            rest.starts_with(homes)
                .then(|| path.len() - rest.len() + homes.len())
        })?;
    let end = path[before..]
        .find(['/', '\\'])
        .map_or(path.len(), |at| before + at);
    (end > before).then_some(before..end)
}

/// Whether what is around a name is not part of a longer one.
fn is_word(text: &str, span: &Range<usize>) -> bool {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut behind = text[span.end..].chars();
    let next = behind.next();
    let goes_on = match next {
        Some('.') => behind.next().is_some_and(char::is_alphanumeric) && !is_git(&text[span.end..]),
        Some(c) => joins(c),
        None => false,
    };
    let mut ahead = text[..span.start].chars().rev();
    let follows = match ahead.next() {
        // As in `main..branch`, where nothing is joined.
        Some('.') => ahead.next().is_some_and(char::is_alphanumeric),
        Some(c) => joins(c),
        None => false,
    };
    !goes_on && !follows
}

fn is_git(behind: &str) -> bool {
    behind
        .strip_prefix(".git")
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use quipu_model::{Origin, RunId};

    use super::*;

    fn replaced(text: &str) -> String {
        let mut header = Header::new(RunId::new("r").unwrap());
        header.environment.cwd = Some("/home/ada/code/app".to_owned());
        header.environment.repository = Some("git@example.com:lovelace/engine.git".to_owned());
        header.environment.git_branch = Some("fix/loom-7".to_owned());
        header.origin = Some(Origin {
            path: Some("/home/ada/.claude/projects/-home-ada-code-app/x.jsonl".to_owned()),
            ..Origin::default()
        });
        let host = Name {
            of: NameOf::Host,
            text: "analytical".to_owned(),
        };
        let key = Key::from_bytes([3; 32]);
        let learned = Learned::default();
        let names = Names::of(&header, &[host], &learned, Environment::Drop, &key);
        let mut out = String::new();
        let mut end = 0;
        for (span, index) in names.find(text) {
            out.push_str(&text[end..span.start]);
            out.push_str(names.get(index).1);
            end = span.end;
        }
        out + &text[end..]
    }

    #[test]
    fn the_longest_name_is_replaced_and_only_whole_ones() {
        for (text, expected) in [
            ("cd /home/ada/code/app/src", "cd [REDACTED:dir]/src"),
            (
                "/home/ada/code/app2 ada-x adam",
                "/home/[REDACTED:user]/code/app2 ada-x adam",
            ),
            ("/home/ada/code/app.", "[REDACTED:dir]."),
            ("p/-home-ada-code-app/x", "p/[REDACTED:dir]/x"),
            (
                "git clone git@example.com:lovelace/engine.git",
                "git clone [REDACTED:repo]",
            ),
            (
                "https://example.com/lovelace/engine.git",
                "https://example.com/[REDACTED:repo].git",
            ),
            ("on fix/loom-7, on main", "on [REDACTED:branch], on main"),
            (
                "git log main..fix/loom-7",
                "git log main..[REDACTED:branch]",
            ),
            (
                "the engine of Ada, of ADA",
                "the [REDACTED:repo] of [REDACTED:user], of [REDACTED:user]",
            ),
            ("lovelace/other, a.ada", "[REDACTED:user]/other, a.ada"),
            ("ada@analytical:~$", "[REDACTED:user]@[REDACTED:host]:~$"),
        ] {
            assert_eq!(replaced(text), expected);
        }
    }

    fn without(own: &str, text: &str) -> String {
        let header = Header::new(RunId::new("r").unwrap());
        let name = Name {
            of: NameOf::Repository,
            text: own.to_owned(),
        };
        let key = Key::from_bytes([3; 32]);
        let names = Names::of(
            &header,
            &[name],
            &Learned::default(),
            Environment::Drop,
            &key,
        );
        let mut out = text.to_owned();
        for (span, _) in names.find(text).into_iter().rev() {
            out.replace_range(span, "N");
        }
        out
    }

    #[test]
    fn a_name_is_known_as_a_part_of_others_and_misspelled() {
        for (text, expected) in [
            ("spectora-labs-monorepo", "N"),
            ("SpectoraLabsMonorepo spectora_labs_monorepo", "N N"),
            ("the spectora client", "the N client"),
            (
                "SPECTORA_TOKEN SpectoraClient spectora-db @spectora/ui",
                "N_TOKEN NClient N-db @N/ui",
            ),
            ("myspectoraapp spectora2", "myNapp N2"),
            (
                "Spectroa, sprinter, spektora and spectoras",
                "N, sprinter, N and N",
            ),
            // Words that are everybody's stay.
            ("the labs have a monorepo", "the labs have a monorepo"),
        ] {
            assert_eq!(without("spectora-labs-monorepo", text), expected);
        }
        assert_eq!(
            without("oh-my-posh", "omp OMP_CACHE omp-e2e pomp"),
            "N N_CACHE N-e2e pomp"
        );
        // Short names are words of their own.
        assert_eq!(
            without("loom", "loom looms bloom loom_db loomDb"),
            "N looms bloom N_db NDb"
        );
        assert_eq!(without("abc", "abc abc-d abcd"), "N abc-d abcd");
    }

    #[test]
    fn homes_are_known_on_every_system() {
        for (path, user) in [
            ("/home/ada/x", Some("ada")),
            ("/Users/ada", Some("ada")),
            ("C:\\Users\\ada\\x", Some("ada")),
            ("/home/", None),
            ("/srv/home/ada", None),
            ("/", None),
        ] {
            assert_eq!(home_of(path).map(|span| &path[span]), user, "{path}");
        }
    }

    #[test]
    fn what_stands_for_a_name_is_no_name() {
        let key = Key::from_bytes([3; 32]);
        assert!(is_stand_in(&key.pseudonym("dir", "/code")));
        assert!(is_stand_in("[REDACTED:dir]"));
        assert!(!is_stand_in("dir_x") && !is_stand_in("/code"));
    }

    /// A copy that is shared again has stand-ins where the names were. Nothing in it is a part of them.
    #[test]
    fn what_stands_for_a_name_has_no_parts() {
        let key = Key::from_bytes([3; 32]);
        for hash in ["6e88b62a5890115e", "abcdefabcdefabcd", "0123456789012345"] {
            let mut header = Header::new(RunId::new("r").unwrap());
            let dir = format!("dir_{hash}");
            header.environment.cwd = Some(dir.clone());
            header.environment.repository =
                Some(format!("https://example.com/user_{hash}/repo_{hash}"));
            let how = Environment::Pseudonym;
            let names = Names::of(&header, &[], &Learned::default(), how, &key);
            for text in [dir.clone(), format!("dir-{hash}"), format!("user_{hash}")] {
                let found = names.find(&text);
                assert!(found.is_empty(), "{text}: {found:?}");
            }
        }
    }
}
