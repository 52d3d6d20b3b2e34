//! Where workflows, prompts, scripts and templates are looked for.

use std::path::{Component, Path, PathBuf};

use crate::names::nearest;

/// The most files that are listed in one directory.
const MOST_FILES: usize = 10_000;

/// Where files of workflows are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The directory that a run begins in.
    pub cwd: PathBuf,
    /// Directories with workflows, the first first.
    pub workflows: Vec<PathBuf>,
    /// Directories with packs.
    pub packs: Vec<PathBuf>,
    /// Directories of the project: `.quipu`, `.awf`.
    pub project: Vec<PathBuf>,
    /// Directories of the user: configuration of Quipu and awf.
    pub user: Vec<PathBuf>,
    /// Directories with roles.
    pub roles: Vec<PathBuf>,
    /// Directories with skills.
    pub skills: Vec<PathBuf>,
    /// Directories with plugins.
    pub plugins: Vec<PathBuf>,
    /// The directory with data of the user.
    pub data: PathBuf,
}

/// A workflow that was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// The name cannot be one.
    #[error("{name:?} is not the name of a workflow: {why}")]
    BadName {
        /// The name.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// There is none of this name.
    #[error("there is no workflow {name}{}", .like.as_ref().map(|like| format!("; did you mean {like}?")).unwrap_or_default())]
    Unknown {
        /// The name.
        name: String,
        /// A name that is much like it.
        like: Option<String>,
        /// The directories that were looked into.
        looked: Vec<PathBuf>,
    },
}

/// A workflow file that was found.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Listed {
    /// The name that finds it: `name` or `pack/name`.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Whether a file of the same name comes before it.
    pub hidden: bool,
}

impl Places {
    /// The places that the environment of this process and a directory give.
    pub fn from_env(cwd: &Path) -> Self {
        Self::from_lookup(cwd, |name| std::env::var_os(name).map(PathBuf::from))
    }

    /// The places that a directory and variables of an environment give.
    pub fn from_lookup(cwd: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.as_os_str().is_empty());
        let home = set("HOME").unwrap_or_else(|| cwd.to_owned());
        let config = set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let data = set("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
        let user = vec![
            config.join("quipu"),
            set("AWF_CONFIG_HOME").unwrap_or_else(|| config.join("awf")),
        ];
        let project = vec![cwd.join(".quipu"), cwd.join(".awf")];
        let listed = |names: [&str; 2]| -> Vec<PathBuf> {
            names
                .iter()
                .filter_map(|name| set(name))
                .flat_map(|value| std::env::split_paths(&value).collect::<Vec<_>>())
                .map(|path| cwd.join(path))
                .collect()
        };
        let below = |dirs: &[PathBuf], name: &str| -> Vec<PathBuf> {
            dirs.iter().map(|dir| dir.join(name)).collect()
        };
        let agents = |name: &str| -> Vec<PathBuf> {
            let variable = name.to_uppercase();
            let mut dirs = listed([
                &format!("QUIPU_{variable}_PATH"),
                &format!("AWF_{variable}_PATH"),
            ]);
            dirs.extend(below(&project, name));
            dirs.push(cwd.join(".agents").join(name));
            dirs.extend(below(&user, name));
            dirs.push(home.join(".agents").join(name));
            dirs
        };
        let mut workflows = listed(["QUIPU_WORKFLOWS_PATH", "AWF_WORKFLOWS_PATH"]);
        workflows.extend(below(&project, "workflows"));
        workflows.extend(below(&user, "workflows"));
        let datas = [data.join("quipu"), data.join("awf")];
        let mut packs = below(&project, "workflow-packs");
        packs.extend(below(&user, "workflow-packs"));
        packs.extend(below(&datas, "workflow-packs"));
        let mut plugins = listed(["QUIPU_PLUGINS_PATH", "AWF_PLUGINS_PATH"]);
        plugins.extend(below(&project, "plugins"));
        plugins.extend(below(&datas, "plugins"));
        Self {
            cwd: cwd.to_owned(),
            workflows,
            packs,
            roles: agents("roles"),
            skills: agents("skills"),
            plugins,
            data: data.join("quipu"),
            project,
            user,
        }
    }

    /// The file of a workflow: a path that exists, a name, or `pack/name`.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn find(&self, name: &str) -> Result<PathBuf, NotFound> {
        let as_path = self.cwd.join(name);
        if !name.is_empty() && as_path.is_file() {
            return Ok(as_path);
        }
        check_name(name)?;
        let (dirs, stem): (Vec<PathBuf>, &str) = match name.split_once('/') {
            Some((pack, stem)) => (
                self.packs
                    .iter()
                    .map(|dir| dir.join(pack).join("workflows"))
                    .collect(),
                stem,
            ),
            None => (self.workflows.clone(), name),
        };
        let found = dirs
            .iter()
            .flat_map(|dir| ["yaml", "yml"].map(|ending| dir.join(format!("{stem}.{ending}"))))
            .find(|path| path.is_file());
        found.ok_or_else(|| {
            let listed = self.list();
            NotFound::Unknown {
                name: name.to_owned(),
                like: nearest(name, listed.iter().map(|listed| listed.name.as_str()))
                    .map(str::to_owned),
                looked: dirs,
            }
        })
    }

    /// All workflows, by name.
    pub fn list(&self) -> Vec<Listed> {
        let mut found: Vec<Listed> = Vec::new();
        let mut add = |dir: &Path, pack: Option<&str>| {
            for path in files_of(dir) {
                let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else {
                    continue;
                };
                let name = match pack {
                    Some(pack) => format!("{pack}/{stem}"),
                    None => stem.to_owned(),
                };
                let hidden = found.iter().any(|other| other.name == name);
                found.push(Listed { name, path, hidden });
            }
        };
        for dir in &self.workflows {
            add(dir, None);
        }
        for dir in &self.packs {
            for pack in entries_of(dir) {
                if let Some(name) = pack.file_name().and_then(|name| name.to_str()) {
                    add(&pack.join("workflows"), Some(name));
                }
            }
        }
        found.sort_by(|a, b| (&a.name, a.hidden).cmp(&(&b.name, b.hidden)));
        found
    }

    /// The value of `awf.<name>`: a directory with its path. `pack` is the pack of the workflow.
    pub fn awf(&self, name: &str, pack: Option<&str>) -> Option<String> {
        let text = |path: &Path| Some(path.to_string_lossy().into_owned());
        match name {
            "prompts_dir" => text(&self.dir("prompts", pack)),
            "scripts_dir" => text(&self.dir("scripts", pack)),
            "workflows_dir" => text(&self.dir("workflows", pack)),
            "plugins_dir" => self.plugins.first().and_then(|path| text(path)),
            "config_dir" => self.user.first().and_then(|path| text(path)),
            "data_dir" => text(&self.data),
            "pack_name" => Some(pack.unwrap_or_default().to_owned()),
            _ => None,
        }
    }

    /// The names that [`awf`](Self::awf) knows.
    pub const AWF: [&'static str; 7] = [
        "prompts_dir",
        "scripts_dir",
        "config_dir",
        "data_dir",
        "workflows_dir",
        "plugins_dir",
        "pack_name",
    ];

    /// The directory for files of one sort (`prompts`, `scripts`, …): the first that exists, that of the pack, the
    /// project, then the user.
    pub fn dir(&self, sort: &str, pack: Option<&str>) -> PathBuf {
        let dirs = self.dirs(sort, pack);
        let first = dirs.iter().find(|dir| dir.is_dir()).or(dirs.first());
        first.cloned().unwrap_or_else(|| self.cwd.join(sort))
    }

    /// All directories for files of one sort, the first first.
    pub fn dirs(&self, sort: &str, pack: Option<&str>) -> Vec<PathBuf> {
        let packs = pack.into_iter().flat_map(|pack| {
            self.packs
                .iter()
                .map(move |dir| dir.join(pack).join(sort))
                .filter(|dir| dir.is_dir())
        });
        packs
            .chain(self.project.iter().map(|dir| dir.join(sort)))
            .chain(self.user.iter().map(|dir| dir.join(sort)))
            .collect()
    }

    /// The file that a path of a workflow names: where the path lies below one of the directories of its sort and the
    /// project has a file of the same name, that one is preferred. A relative path begins at the workflow's own
    /// directory, the directory of the run, and the directories of the sort, the first where it exists.
    pub fn file(&self, sort: &str, path: &Path, workflow: &Path, pack: Option<&str>) -> PathBuf {
        let dirs = self.dirs(sort, pack);
        if path.is_absolute() {
            let below = dirs.iter().find_map(|dir| path.strip_prefix(dir).ok());
            let local = below
                .filter(|below| {
                    below
                        .components()
                        .all(|part| matches!(part, Component::Normal(_)))
                })
                .and_then(|below| {
                    let mut local = dirs.iter().map(|dir| dir.join(below));
                    local.find(|path| path.is_file())
                });
            return local.unwrap_or_else(|| path.to_owned());
        }
        let own = workflow.parent().map(|dir| self.cwd.join(dir).join(path));
        let run = self.cwd.join(path);
        own.into_iter()
            .chain([run.clone()])
            .chain(dirs.iter().map(|dir| dir.join(path)))
            .find(|path| path.is_file())
            .unwrap_or(run)
    }

    /// The file of a step template.
    pub fn step_template(&self, name: &str, pack: Option<&str>) -> Option<PathBuf> {
        check_name(name).ok()?;
        self.dirs("templates", pack)
            .iter()
            .flat_map(|dir| ["yaml", "yml"].map(|ending| dir.join(format!("{name}.{ending}"))))
            .find(|path| path.is_file())
    }

    /// The names of all step templates.
    pub fn step_templates(&self, pack: Option<&str>) -> Vec<String> {
        let mut names: Vec<String> = self
            .dirs("templates", pack)
            .iter()
            .flat_map(|dir| files_of(dir))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// The pack that a workflow file belongs to: `<packs>/<pack>/workflows/<file>`.
    pub fn pack_of(&self, file: &Path) -> Option<String> {
        let pack = file.parent()?.parent()?;
        let packs = pack.parent()?;
        (packs.file_name()? == "workflow-packs")
            .then(|| pack.file_name()?.to_str().map(str::to_owned))
            .flatten()
    }
}

/// Names become parts of paths: nothing in them may lead elsewhere.
fn check_name(name: &str) -> Result<(), NotFound> {
    let bad = |why| {
        Err(NotFound::BadName {
            name: name.chars().take(100).collect(),
            why,
        })
    };
    if name.is_empty() {
        return bad("it is empty");
    }
    if name.split(['/', '\\']).any(|part| part == "..") {
        return bad("it may not contain ..");
    }
    if name.starts_with('/') || name.split('/').count() > 2 || name.ends_with('/') {
        return bad("it is name or pack/name, or the path of a file that exists");
    }
    if name.chars().any(|c| c.is_control() || c == '\\') {
        return bad("it may not contain control characters or \\");
    }
    Ok(())
}

fn entries_of(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.take(MOST_FILES).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn files_of(dir: &Path) -> Vec<PathBuf> {
    let yaml = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("yaml" | "yml")) && path.is_file()
    };
    entries_of(dir).into_iter().filter(yaml).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[&str]) -> (tempfile::TempDir, Places) {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::File::create(path).unwrap();
        }
        let home = dir.path().join("home");
        let extra = dir.path().join("extra");
        let places = Places::from_lookup(&dir.path().join("work"), |name| match name {
            "HOME" => Some(home.clone()),
            "AWF_WORKFLOWS_PATH" => Some(extra.clone()),
            _ => None,
        });
        (dir, places)
    }

    #[test]
    fn names_are_found_in_order_and_paths_as_they_are() {
        let (dir, places) = project(&[
            "extra/a.yaml",
            "work/.quipu/workflows/a.yaml",
            "work/.quipu/workflows/b.yml",
            "work/.awf/workflows/b.yaml",
            "work/.awf/workflows/c.yaml",
            "home/.config/awf/workflows/d.yaml",
            "work/.awf/workflow-packs/tools/workflows/e.yaml",
            "work/here.yaml",
        ]);
        for (name, path) in [
            ("a", "extra/a.yaml"),
            ("b", "work/.quipu/workflows/b.yml"),
            ("c", "work/.awf/workflows/c.yaml"),
            ("d", "home/.config/awf/workflows/d.yaml"),
            ("tools/e", "work/.awf/workflow-packs/tools/workflows/e.yaml"),
            ("here.yaml", "work/here.yaml"),
            ("./here.yaml", "work/./here.yaml"),
            ("../work/here.yaml", "work/../work/here.yaml"),
        ] {
            assert_eq!(places.find(name), Ok(dir.path().join(path)), "{name}");
        }
        let listed = places.list();
        let names: Vec<(&str, bool)> = listed
            .iter()
            .map(|listed| (listed.name.as_str(), listed.hidden))
            .collect();
        assert_eq!(
            names,
            [
                ("a", false),
                ("a", true),
                ("b", false),
                ("b", true),
                ("c", false),
                ("d", false),
                ("tools/e", false)
            ]
        );
    }

    #[test]
    fn a_miss_suggests_and_a_name_leads_nowhere_else() {
        let (_dir, places) = project(&["extra/release.yaml", "secret.yaml"]);
        let miss = places.find("relaese").expect_err("it does not exist");
        assert_eq!(
            miss.to_string(),
            "there is no workflow relaese; did you mean release?"
        );
        for name in [
            "",
            "../secret",
            "pack/../../secret",
            "a/b/c",
            "/etc/x",
            "a\\..\\b",
            "pack/",
        ] {
            let miss = places.find(name);
            assert!(
                matches!(miss, Err(NotFound::BadName { .. })),
                "{name}: {miss:?}"
            );
        }
    }

    #[test]
    fn files_of_the_project_come_before_those_of_the_user() {
        let (dir, places) = project(&[
            "home/.config/awf/prompts/p.md",
            "home/.config/awf/prompts/only.md",
            "work/.awf/prompts/p.md",
        ]);
        let user = dir.path().join("home/.config/awf/prompts");
        let local = dir.path().join("work/.awf/prompts");
        let workflow = Path::new("w.yaml");
        let file = |path: &Path| places.file("prompts", path, workflow, None);
        assert_eq!(file(&user.join("p.md")), local.join("p.md"));
        assert_eq!(file(&local.join("only.md")), user.join("only.md"));
        assert_eq!(file(Path::new("p.md")), local.join("p.md"));
        assert_eq!(file(&user.join("../../x")), user.join("../../x"));
        assert_eq!(
            places.awf("prompts_dir", None),
            Some(local.to_string_lossy().into_owned())
        );
        for name in Places::AWF {
            assert!(places.awf(name, None).is_some(), "{name}");
        }
    }
}
