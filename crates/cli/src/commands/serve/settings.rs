//! From arguments and configuration to what a server is made of.

use std::path::Path;
use std::sync::Arc;

use quipu_convert::source::Removal;
use quipu_server::Problem;
use quipu_server::app::{Parts, Removals};
use quipu_server::options::{Listen, Options, Tls};

use super::Manner;
use crate::args::{Rules, Serve, address};
use crate::config::Config;
use crate::error::{CommandError, Result};
use crate::locate::HomePlace;
use crate::redaction;

pub(super) fn options(args: &Serve, manner: &Manner) -> Result<Options> {
    let mut options = Options {
        host_names: args.host_name.clone(),
        require_keys: args.require_keys,
        any_local_user: args.any_local_user,
        samples: manner.samples,
        run_directories: args.runs.clone(),
        ..Options::default()
    };
    if !args.listen.is_empty() {
        let all = args.listen.iter().map(|text| address(text));
        let all: Result<Vec<_>, _> = all.collect();
        let all = all.map_err(|why| CommandError::usage(format!("--listen: {why}")))?;
        // Whoever reads where the server is may be in another directory.
        let whole = all.into_iter().map(|listen| match listen {
            Listen::Unix(path) => Listen::Unix(std::path::absolute(&path).unwrap_or(path)),
            tcp @ Listen::Tcp { .. } => tcp,
        });
        options.listen = whole.collect();
    }
    if let (Some(certificates), Some(key)) = (&args.tls_cert, &args.tls_key) {
        options.tls = Some(Tls {
            certificates: certificates.clone(),
            key: key.clone(),
        });
    }
    for runs in &args.runs {
        if !runs.is_dir() {
            let message = format!("--runs: there is no directory {}", runs.display());
            return Err(CommandError::usage(message));
        }
    }
    let work = args.work_dir.clone().unwrap_or_else(|| ".".into());
    options.work_directory = std::path::absolute(&work)
        .ok()
        .filter(|path| path.is_dir())
        .ok_or_else(|| {
            let message = format!("--work-dir: there is no directory {}", work.display());
            CommandError::usage(message)
        })?;
    Ok(options)
}

pub(super) fn parts(home: &Path, config: &Config) -> Result<Parts> {
    Ok(Parts {
        home: home.to_owned(),
        prices: config.prices(),
        keys: None,
        removals: Box::new(Profiles {
            place: HomePlace::new(Some(home.to_owned())),
        }),
        host: HomePlace::host_of(home)?,
    })
}

/// The profiles and rules of the configuration, as the other commands have them.
#[derive(Debug)]
struct Profiles {
    place: HomePlace,
}

impl Removals for Profiles {
    fn by(&self, profile: &str) -> Result<Removal, Problem> {
        // A name over HTTP is a name, and not a file of this machine.
        if quipu_redact::Profile::builtin(profile).is_none() {
            let names = quipu_redact::Profile::NAMES.join(", ");
            let problem =
                Problem::bad_parameter("profile", format!("{profile:?} is not a profile"));
            return Err(problem.hint(format!("profiles are {names}")));
        }
        let rules = Rules {
            profile: Some(profile.to_owned()),
            rule_files: Vec::new(),
        };
        let removal = redaction::Removal::of(&rules, &self.place, profile);
        let removal = removal.map_err(|error| Problem::store(&error))?;
        let key = redaction::identity(&self.place).map_err(|error| Problem::store(&error))?;
        Ok(Removal {
            engine: Arc::clone(&removal.engine),
            profile: removal.profile,
            key,
            decisions: redaction::names(),
            submitter: None,
        })
    }
}
