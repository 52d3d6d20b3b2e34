//! What is removed: rules and profiles as they are named on the command line and in the configuration.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use quipu_redact::session::{Decisions, Name, NameOf};
use quipu_redact::{Engine, Guard, Key, Kind, Profile, RuleError, RuleSet};

use crate::args::Rules;
use crate::config::{self, Config};
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::HomePlace;

/// The variable that names a profile.
const PROFILE: &str = "QUIPU_PROFILE";

/// What is removed, ready to be used.
#[derive(Debug)]
pub(crate) struct Removal {
    pub(crate) profile: Profile,
    pub(crate) engine: Arc<Engine>,
}

impl Removal {
    /// What the command line says, else the environment, else the configuration, else `otherwise`.
    pub(crate) fn of(rules: &Rules, place: &HomePlace, otherwise: &str) -> Result<Self> {
        let config = Config::load(&place.home()?)?;
        let named = named(rules, &config).unwrap_or_else(|| otherwise.to_owned());
        Self::by(&named, rules, &config, place)
    }

    /// What is removed where nothing is unless somebody says so.
    pub(crate) fn if_named(rules: &Rules, place: &HomePlace) -> Result<Option<Self>> {
        let config = Config::load(&place.home()?)?;
        let Some(named) = named(rules, &config) else {
            return Ok(None);
        };
        let removal = Self::by(&named, rules, &config, place)?;
        Ok(removal.removes_anything().then_some(removal))
    }

    fn by(name: &str, rules: &Rules, config: &Config, place: &HomePlace) -> Result<Self> {
        let profile = profile(name)?;
        let rules = rule_set(&rules.rule_files, config, place)?;
        let engine = Engine::new(&rules, |rule| profile.wants(rule)).map_err(broken)?;
        Ok(Self {
            profile,
            engine: Arc::new(engine),
        })
    }

    /// Whether the profile is another than the one that leaves everything as it is.
    pub(crate) fn removes_anything(&self) -> bool {
        !self.profile.changes_nothing()
    }
}

fn named(rules: &Rules, config: &Config) -> Option<String> {
    let variable = || std::env::var(PROFILE).ok().filter(|name| !name.is_empty());
    let configured = || config.redact.profile.clone();
    rules.profile.clone().or_else(variable).or_else(configured)
}

/// A profile by its name, or in a file.
fn profile(name: &str) -> Result<Profile> {
    if let Some(profile) = Profile::builtin(name) {
        return Ok(profile);
    }
    let path = Path::new(name);
    if path.is_file() {
        return Profile::load(path).map_err(|error| CommandError::new(Exit::Data, error));
    }
    let error = CommandError::usage(format!("there is no profile {name:?}"));
    Err(error.hint(format!(
        "there are {}; or name a file",
        Profile::NAMES.join(", ")
    )))
}

/// The built-in rules and those of files. One that is broken is an error, and none is used.
fn rule_set(files: &[PathBuf], config: &Config, place: &HomePlace) -> Result<RuleSet> {
    let mut rules = RuleSet::builtin();
    let beside = config::path(&place.home()?);
    let beside = beside.parent().unwrap_or(Path::new(""));
    let configured = config.redact.rules.iter().map(|file| beside.join(file));
    for file in configured.chain(files.iter().cloned()) {
        rules.extend(RuleSet::load(&file).map_err(broken)?);
    }
    Ok(rules)
}

fn broken(error: RuleError) -> CommandError {
    let exit = match error {
        RuleError::Io { .. } => Exit::Environment,
        _ => Exit::Data,
    };
    CommandError::new(exit, error).hint("nothing was done; docs/rules.md says what a rule is")
}

/// What is removed from logs before anything of them is kept.
pub(crate) fn of_import(asked: Option<&str>, place: &HomePlace) -> Result<Option<Arc<Engine>>> {
    let config = Config::load(&place.home()?)?;
    let Some(name) = asked.or(config.redact.import.as_deref()) else {
        return Ok(None);
    };
    let rules = Rules {
        profile: None,
        rule_files: Vec::new(),
    };
    let removal = Removal::by(name, &rules, &config, place)?;
    Ok(removal.removes_anything().then_some(removal.engine))
}

/// What is hidden on a screen beside secrets, where the configuration names a profile.
pub(crate) fn of_screen(place: &HomePlace) -> Result<Option<Arc<Guard>>> {
    let rules = Rules {
        profile: None,
        rule_files: Vec::new(),
    };
    let Some(removal) = Removal::if_named(&rules, place)? else {
        return Ok(None);
    };
    let engine = Arc::into_inner(removal.engine);
    Ok(engine.map(|engine| Arc::new(Guard::new(engine))))
}

/// Hides secrets in what is summed up: names, titles, first words. Made when it is first needed.
pub(crate) fn secrets() -> &'static Guard {
    static SECRETS: OnceLock<Guard> = OnceLock::new();
    SECRETS.get_or_init(|| {
        // A test loads the rules that come along; were they broken, nothing could be imported either.
        Guard::secrets().unwrap_or_else(|error| unreachable!("{error}"))
    })
}

/// A name, a title or a path without its secrets.
pub(crate) fn masked(text: &str) -> String {
    secrets().mask_path(text).into_owned()
}

/// Whether what is recorded is masked.
pub(crate) fn of_recording(
    asked: bool,
    place: &HomePlace,
) -> Result<Option<(Arc<Engine>, Profile)>> {
    let variable =
        std::env::var("QUIPU_MASK").is_ok_and(|set| !matches!(&*set, "" | "0" | "false"));
    let config = Config::load(&place.home()?)?;
    if !asked && !variable && !config.redact.record {
        return Ok(None);
    }
    let rules = rule_set(&[], &config, place)?;
    let profile = Profile {
        kinds: vec![Kind::Secret],
        ..profile("local")?
    };
    let engine = Engine::new(&rules, |rule| profile.wants(rule)).map_err(broken)?;
    Ok(Some((Arc::new(engine), profile)))
}

/// Names that a session need not say, and that may stand in it: of the person and of the machine.
pub(crate) fn names() -> Decisions {
    let user = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok());
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let named = |of, text: Option<String>| {
        let text = text?.trim().to_owned();
        // Shorter ones are words of their own, and these are everybody's.
        let is_name = text.len() >= 3 && !["root", "user", "localhost"].contains(&&*text);
        is_name.then_some(Name { of, text })
    };
    Decisions {
        names: [named(NameOf::User, user), named(NameOf::Host, host)]
            .into_iter()
            .flatten()
            .collect(),
        ..Decisions::default()
    }
}

/// The name of the file with the key that pseudonyms and proofs are made with.
const IDENTITY: &str = "identity.key";

/// The key of whoever shares from this home; made the first time.
pub(crate) fn identity(place: &HomePlace) -> Result<Key> {
    let home = place.home()?;
    let path = home.join(IDENTITY);
    let about = || format!("could not use {}", path.display());
    if let Some(key) = read_identity(&path)? {
        return Ok(key);
    }
    quipu_files::create_directory(&home).map_err(io_error(about()))?;
    let key = Key::random().map_err(|error| CommandError::new(Exit::Environment, error))?;
    let mut options = quipu_files::options();
    let mut file = match options.write(true).create_new(true).open(&path) {
        Ok(file) => file,
        // Another process was quicker.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let read = read_identity(&path)?;
            return read.ok_or_else(|| io_error(about())(error));
        }
        Err(error) => return Err(io_error(about())(error)),
    };
    let written = file
        .write_all(key.as_bytes())
        .and_then(|()| file.sync_all());
    if let Err(error) = written {
        drop(fs::remove_file(&path));
        return Err(io_error(about())(error));
    }
    Ok(key)
}

/// The key, where there is one.
pub(crate) fn existing_identity(place: &HomePlace) -> Result<Option<Key>> {
    read_identity(&place.home()?.join(IDENTITY))
}

fn read_identity(path: &Path) -> Result<Option<Key>> {
    let about = || format!("could not read {}", path.display());
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(about())(error)),
    };
    let mut bytes = Vec::new();
    file.take(33)
        .read_to_end(&mut bytes)
        .map_err(io_error(about()))?;
    let bytes: [u8; 32] = bytes.try_into().map_err(|_| {
        let error = anyhow::anyhow!("{} is no key of 32 bytes", path.display());
        let hint = "it was damaged; put the copy back, or move it away to get a new identity";
        CommandError::new(Exit::Data, error).hint(hint)
    })?;
    Ok(Some(Key::from_bytes(bytes)))
}
