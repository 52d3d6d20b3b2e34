//! Finding logs.

use std::collections::HashSet;
use std::fs::{self, FileType, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use quipu_agents::{FAMILIES, Family, Host, LogPlace, Pick, is_credential};
use quipu_formats::flow;

use super::report::Problem;
use crate::catalogue::Stamp;

/// The deepest directories that are looked into below a path that was given.
const DEEPEST: usize = 32;

/// How much of a file is looked at to know whether it holds many sessions.
const BEGIN: u64 = 4_096;

/// What may be a log.
#[derive(Clone)]
pub struct Candidate {
    /// Where it is.
    pub path: PathBuf,
    /// What it looks like.
    pub stamp: Stamp,
    /// What it is to be done with.
    pub found: Found,
    /// The agent and its family, when it lies where that agent keeps logs.
    pub place: Option<(&'static str, &'static dyn Family)>,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A log.
    Log,
    /// To be kept as it is.
    Keep,
    /// Something that holds many sessions.
    Many,
}

impl std::fmt::Debug for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Candidate")
            .field("path", &self.path)
            .field("found", &self.found)
            .field("agent", &self.place.map(|place| place.0))
            .finish_non_exhaustive()
    }
}

/// What was found, and what was not looked at.
#[derive(Debug, Default)]
pub struct Search {
    /// What may be logs.
    pub found: Vec<Candidate>,
    /// What could not be looked at.
    pub problems: Vec<Problem>,
    /// Files that hold credentials, by their name. They were not opened.
    pub credentials: u64,
    /// Empty files.
    pub empty: u64,
    /// Pipes, sockets and devices, and links that lead out of a directory that was named.
    pub special: u64,
    visited: HashSet<(u64, u64)>,
    seen: HashSet<PathBuf>,
}

/// Said of a link that is not followed.
const LEADS_OUT: &str = "a link that leads out of its directory, so it is not followed; name it to import what it leads to";

/// What a walk is after.
struct Walk<'w> {
    brand: &'static str,
    family: &'static dyn Family,
    root: &'w Path,
    depth: usize,
    pick: fn(&Path) -> Pick,
}

impl Search {
    /// Looks where agents keep logs.
    pub fn of_places(host: &Host, agents: &[String]) -> Self {
        let mut search = Self::default();
        for (family, place) in places(host, agents) {
            search.place(family, &place, &place.root);
        }
        search.prefer_plain();
        search
    }

    /// Looks at these files, and into these directories. Below the places of agents their rules apply;
    /// elsewhere anything may be a log.
    pub fn of_paths(host: &Host, paths: &[PathBuf], agents: &[String]) -> Self {
        let mut search = Self::default();
        for path in paths {
            let path = match fs::canonicalize(whole(path)) {
                Ok(path) => path,
                Err(error) => {
                    search.refused(path, &error);
                    continue;
                }
            };
            let mut in_place = false;
            for (family, place) in places(host, agents) {
                if path.starts_with(&place.root) {
                    search.place(family, &place, &path);
                    in_place = true;
                } else if place.root.starts_with(&path) {
                    search.place(family, &place, &place.root);
                }
            }
            if !in_place {
                search.anything(&path);
            }
        }
        search.prefer_plain();
        search
    }

    /// Looks at what other programs sent, below this home: at these files of it, or at all where none are named.
    pub fn of_received(home: &Path, paths: &[PathBuf]) -> Self {
        let home = fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
        let host = Host::new(&home, |_| None).with_quipu(&home);
        if !paths.is_empty() {
            return Self::of_paths(&host, paths, &[]);
        }
        let mut search = Self::default();
        for family in FAMILIES.iter().filter(|family| family.name() == "otlp") {
            for place in family.places(&host) {
                search.place(*family, &place, &place.root);
            }
        }
        search
    }

    /// Where a log is there both plain and compressed, the plain one counts.
    fn prefer_plain(&mut self) {
        let paths: HashSet<PathBuf> = self.found.iter().map(|c| c.path.clone()).collect();
        self.found.retain(|candidate| {
            candidate
                .path
                .extension()
                .is_none_or(|ending| ending != "zst")
                || !paths.contains(&candidate.path.with_extension(""))
        });
    }

    fn refused(&mut self, path: &Path, error: &io::Error) {
        self.problems.push(Problem::refused(path, error));
    }

    fn place(&mut self, family: &'static dyn Family, place: &LogPlace, from: &Path) {
        let walk = Walk {
            brand: place.brand,
            family,
            root: &place.root,
            depth: place.depth,
            pick: place.pick,
        };
        let metadata = match fs::metadata(from) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.refused(from, &error),
        };
        let below = from.strip_prefix(walk.root).unwrap_or(Path::new(""));
        // What lies inside something that holds many sessions stands for all of it.
        let holders = below.ancestors().skip(1);
        let holder = holders
            .filter(|above| (walk.pick)(above) == Pick::Gather)
            .last();
        if let Some(holder) = holder {
            return self.many(&walk, &walk.root.join(holder));
        }
        if metadata.is_file() {
            return self.file(&walk, from, &metadata, is_link(from));
        }
        if (walk.pick)(below) == Pick::Gather {
            return self.many(&walk, from);
        }
        let depth = below.components().count();
        self.directory(&walk, from, depth);
    }

    fn directory(&mut self, walk: &Walk<'_>, from: &Path, depth: usize) {
        let mut left = vec![(from.to_owned(), depth)];
        let mut linked = HashSet::new();
        while let Some((directory, depth)) = left.pop() {
            for (path, kind) in self.entries(&directory) {
                let below = path.strip_prefix(walk.root).unwrap_or(&path);
                let picked = (walk.pick)(below);
                // Agents' own directories may be links; what is inside of them is the agent's, and what a link in
                // them leads to is not.
                if kind.is_symlink() && leads_out(walk.root, &path) {
                    self.led_out(walk, &path, depth);
                    continue;
                }
                if kind.is_dir() {
                    if picked == Pick::Gather {
                        self.many(walk, &path);
                    } else if depth < walk.depth {
                        left.push((path, depth + 1));
                    }
                } else if picked != Pick::Skip {
                    match fs::metadata(&path) {
                        Ok(metadata) if metadata.is_file() => {
                            self.file(walk, &path, &metadata, kind.is_symlink());
                        }
                        Ok(metadata) if !metadata.is_dir() => self.special += 1,
                        Ok(_) => {}
                        Err(error) => self.refused(&path, &error),
                    }
                } else if kind.is_symlink() && depth < walk.depth {
                    // A link to a directory may lead anywhere, also back here.
                    let leads_on = fs::metadata(&path).is_ok_and(|metadata| {
                        metadata.is_dir() && linked.insert((metadata.dev(), metadata.ino()))
                    });
                    if leads_on {
                        left.push((path, depth + 1));
                    }
                }
            }
        }
    }

    /// A link that leads out of an agent's directory. What it leads to is not looked at; that is said, unless it is
    /// nothing that would have been.
    fn led_out(&mut self, walk: &Walk<'_>, path: &Path, depth: usize) {
        let below = path.strip_prefix(walk.root).unwrap_or(path);
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() && depth >= walk.depth => {}
            Ok(metadata) if !metadata.is_dir() && (walk.pick)(below) == Pick::Skip => {}
            Ok(_) if holds_credentials(path, true) => self.credentials += 1,
            Ok(_) => self.not_followed(path),
            Err(error) => self.refused(path, &error),
        }
    }

    /// Says once that a link is not followed.
    fn not_followed(&mut self, path: &Path) {
        let is_said = |problem: &Problem| problem.what == LEADS_OUT && problem.path == path;
        if !self.problems.iter().any(is_said) {
            self.special += 1;
            self.problems.push(Problem::new(path, LEADS_OUT));
        }
    }

    fn file(&mut self, walk: &Walk<'_>, path: &Path, metadata: &Metadata, is_link: bool) {
        let below = path.strip_prefix(walk.root).unwrap_or(path);
        let found = match (walk.pick)(below) {
            Pick::Log => Found::Log,
            Pick::Keep => Found::Keep,
            Pick::Gather => Found::Many,
            Pick::Skip => return,
        };
        if holds_credentials(path, is_link) {
            self.credentials += 1;
        } else {
            self.add(walk, path, metadata, found);
        }
    }

    /// Adds something that holds many sessions.
    fn many(&mut self, walk: &Walk<'_>, path: &Path) {
        match fs::metadata(path) {
            Ok(_) if holds_credentials(path, is_link(path)) => self.credentials += 1,
            Ok(metadata) => self.add(walk, path, &metadata, Found::Many),
            Err(error) => self.refused(path, &error),
        }
    }

    fn add(&mut self, walk: &Walk<'_>, path: &Path, metadata: &Metadata, found: Found) {
        if metadata.is_file() && metadata.len() == 0 {
            self.empty += 1;
        } else if self.seen.insert(path.to_owned()) {
            self.found.push(Candidate {
                path: path.to_owned(),
                stamp: stamp(metadata),
                found,
                place: Some((walk.brand, walk.family)),
            });
        }
    }

    /// Any file below a path may be a log. Whoever names a directory means what is in it, and not what a link
    /// somewhere below makes of it.
    fn anything(&mut self, root: &Path) {
        // A file of a run stands for the whole of it.
        if let Some(run) = flow::run_of(root) {
            return self.held(&run);
        }
        let mut left = vec![(root.to_owned(), 0)];
        while let Some((path, depth)) = left.pop() {
            let metadata = match fs::metadata(&path) {
                Ok(metadata) => metadata,
                Err(error) => {
                    self.refused(&path, &error);
                    continue;
                }
            };
            if leads_out(root, &path) {
                self.not_followed(&path);
            } else if metadata.is_dir() {
                if holding(&path).is_some() {
                    self.held(&path);
                    continue;
                }
                if depth >= DEEPEST {
                    let what =
                        format!("more than {DEEPEST} directories deep; name it to look into it");
                    self.problems.push(Problem::new(&path, what));
                } else if self.visited.insert((metadata.dev(), metadata.ino())) {
                    let entries = self.entries(&path);
                    left.extend(entries.into_iter().map(|(path, _)| (path, depth + 1)));
                }
            } else if !metadata.is_file() {
                self.special += 1;
            } else if holds_credentials(&path, is_link(&path)) {
                self.credentials += 1;
            } else if metadata.len() == 0 {
                self.empty += 1;
            } else if self.seen.insert(path.clone()) {
                let holder = holder(&path);
                self.found.push(Candidate {
                    path,
                    stamp: stamp(&metadata),
                    found: if holder.is_some() {
                        Found::Many
                    } else {
                        Found::Log
                    },
                    place: holder,
                });
            }
        }
    }

    /// Adds a directory that holds sessions.
    fn held(&mut self, path: &Path) {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => return self.refused(path, &error),
        };
        if self.seen.insert(path.to_owned()) {
            self.found.push(Candidate {
                path: path.to_owned(),
                stamp: stamp(&metadata),
                found: Found::Many,
                place: holding(path),
            });
        }
    }

    /// What is in a directory, by name.
    fn entries(&mut self, directory: &Path) -> Vec<(PathBuf, FileType)> {
        let mut entries = Vec::new();
        let listing = match fs::read_dir(directory) {
            Ok(listing) => listing,
            Err(error) => {
                self.refused(directory, &error);
                return entries;
            }
        };
        for entry in listing {
            match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))) {
                Ok(entry) => entries.push(entry),
                Err(error) => self.refused(directory, &error),
            }
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries
    }
}

/// The places of the agents that are asked for.
pub(super) fn places(
    host: &Host,
    agents: &[String],
) -> impl Iterator<Item = (&'static dyn Family, LogPlace)> {
    FAMILIES
        .iter()
        .flat_map(|family| {
            family
                .places(host)
                .into_iter()
                .map(|place| (*family, place))
        })
        .filter(|(_, place)| wanted(agents, place.brand))
        // A log has one name, whatever links lead to it.
        .map(|(family, place)| match fs::canonicalize(&place.root) {
            Ok(root) => (family, LogPlace { root, ..place }),
            Err(_) => (family, place),
        })
}

/// Whether a file holds credentials, by its name or by the name of what it is a link to.
fn holds_credentials(path: &Path, is_link: bool) -> bool {
    is_credential(path)
        || (is_link && fs::canonicalize(path).is_ok_and(|target| is_credential(&target)))
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

/// Whether a path is a link to something that is not below this directory, which has no links in it.
fn leads_out(root: &Path, path: &Path) -> bool {
    path != root
        && is_link(path)
        && !fs::canonicalize(path).is_ok_and(|target| target.starts_with(root))
}

/// Whether an agent is among those asked for, by name or the beginning of it.
pub(super) fn wanted(agents: &[String], brand: &str) -> bool {
    agents.is_empty() || agents.iter().any(|agent| brand.starts_with(agent.as_str()))
}

/// The database that a file beside it belongs to: what changes is often only that.
fn whole(path: &Path) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str());
    let of = name.and_then(|name| {
        ["-wal", "-shm", "-journal"]
            .iter()
            .find_map(|ending| name.strip_suffix(ending))
    });
    match of.map(|of| path.with_file_name(of)) {
        Some(database) if database.is_file() => database,
        _ => path.to_owned(),
    }
}

/// What a file looks like.
pub(super) fn stamp(metadata: &Metadata) -> Stamp {
    let nanos = metadata
        .mtime()
        .checked_mul(1_000_000_000)
        .and_then(|seconds| seconds.checked_add(metadata.mtime_nsec()));
    Stamp {
        size: metadata.len(),
        modified: nanos,
        inode: Some(metadata.ino().cast_signed()),
        part: None,
    }
}
/// Whose sessions a directory holds.
fn holding(directory: &Path) -> Option<(&'static str, &'static dyn Family)> {
    FAMILIES.iter().find_map(|family| {
        let gather = family.gather().filter(|gather| gather.holds(directory))?;
        Some((gather.dialect().brand, *family))
    })
}

/// Whose sessions a file holds, where it holds many.
fn holder(path: &Path) -> Option<(&'static str, &'static dyn Family)> {
    use std::io::Read as _;
    let mut begin = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(BEGIN).read_to_end(&mut begin).ok()?;
    let family = quipu_agents::holder(&begin)?;
    let brand = family.gather().map_or("", |gather| gather.dialect().brand);
    Some((brand, family))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A link to `/` in an agent's directory would have everything archived that looks like a log.
    #[test]
    fn links_out_of_an_agents_directory_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        let put = |path: &str| {
            let path = home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::File::create(&path)
                .and_then(|mut file| io::Write::write_all(&mut file, b"{}\n"))
                .unwrap();
            path
        };
        // The agent's directory is a link, as those make it who keep their settings elsewhere.
        let own = put("dotfiles/claude/projects/-code/own.jsonl");
        symlink(home.join("dotfiles/claude"), home.join(".claude")).unwrap();
        let projects = home.join("dotfiles/claude/projects");
        put("elsewhere/-x/other.jsonl");
        let other = put("other.jsonl");
        symlink("/", projects.join("root")).unwrap();
        symlink(home.join("elsewhere"), projects.join("-more")).unwrap();
        symlink(&other, projects.join("-code/linked.jsonl")).unwrap();
        symlink("own.jsonl", projects.join("-code/inside.jsonl")).unwrap();
        let host = Host::new(&home, |_| None);
        let claude = ["claude".to_owned()];
        let named = [home.join(".claude")];
        for search in [
            Search::of_places(&host, &claude),
            Search::of_paths(&host, &named, &claude),
        ] {
            let found: Vec<&PathBuf> = search.found.iter().map(|it| &it.path).collect();
            assert!(found.contains(&&own), "{found:?}");
            assert!(
                found.iter().all(|path| path.starts_with(&projects)),
                "{found:?}"
            );
            let said: Vec<&Problem> = search.problems.iter().collect();
            assert_eq!((said.len(), search.special), (3, 3), "{said:?}");
            assert!(said.iter().all(|it| it.what == LEADS_OUT), "{said:?}");
        }
    }

    #[test]
    fn links_out_of_a_directory_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        let put = |path: &str| {
            let path = home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::File::create(&path)
                .and_then(|mut file| io::Write::write_all(&mut file, b"{}\n"))
                .unwrap();
            path
        };
        let own = put("run/build/llm/a.jsonl");
        let secret = put("secret.jsonl");
        put("elsewhere/b.jsonl");
        let link = home.join("run/build/llm/x.jsonl");
        symlink("../../../secret.jsonl", &link).unwrap();
        symlink(home.join("elsewhere"), home.join("run/build/more")).unwrap();
        // One that stays inside is followed.
        let inside = home.join("run/build/llm/y.jsonl");
        symlink("a.jsonl", &inside).unwrap();
        let host = Host::new(home.join("nobody"), |_| None);
        let look = |paths: &[PathBuf]| Search::of_paths(&host, paths, &[]);
        let paths = |search: &Search| {
            let mut paths: Vec<PathBuf> = search.found.iter().map(|it| it.path.clone()).collect();
            paths.sort();
            paths
        };
        let search = look(&[home.join("run")]);
        assert_eq!(paths(&search), [own, inside]);
        assert_eq!((search.special, search.problems.len()), (2, 2));
        // What is named itself is read, whatever leads to it.
        let search = look(&[link]);
        assert_eq!(paths(&search), [secret]);
        assert_eq!((search.special, search.problems.len()), (0, 0));
    }
}
