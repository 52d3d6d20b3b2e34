//! Run control over real sockets, with real commands and agents that nobody asks.

mod access;
mod cancel;
mod lifecycle;
mod others;
mod people;

use std::path::Path;
use std::time::{Duration, Instant};

use quipu_record::Storage;
use serde_json::{Value, json};

use crate::access::KeyHolder;
use crate::app::KeyCheck;
use crate::options::Options;
use crate::problem::Problem;
use crate::testkit::{Answer, Served};

/// Keys of two people who may do everything, and of one who reads.
#[derive(Debug)]
struct Keys;

impl KeyCheck for Keys {
    fn check(&self, key: &str, _peer: Option<std::net::IpAddr>) -> Result<KeyHolder, Problem> {
        let (key_id, admin) = match key {
            "qk_ada" => ("ada", true),
            "qk_bob" => ("bob", true),
            "qk_reader" => ("reader", false),
            _ => return Err(Problem::unauthorized("this key is not known")),
        };
        Ok(KeyHolder {
            key_id: key_id.to_owned(),
            submit: false,
            read: true,
            admin,
        })
    }
}

/// A server with a directory of workflows.
pub(super) struct Lab {
    pub(super) served: Served,
    pub(super) work: tempfile::TempDir,
}

pub(super) fn put(path: &Path, text: &str) {
    use std::io::Write as _;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

impl Lab {
    pub(super) fn new(workflows: &[(&str, &str)]) -> Self {
        Self::with(workflows, |_| {}, |_| {})
    }

    pub(super) fn with(
        workflows: &[(&str, &str)],
        fill: impl FnOnce(&Path),
        set: impl FnOnce(&mut Options),
    ) -> Self {
        let work = tempfile::tempdir().unwrap();
        for (name, steps) in workflows {
            let path = format!(".quipu/workflows/{name}.yaml");
            put(&work.path().join(path), &format!("name: {name}\n{steps}"));
        }
        let at = work.path().to_owned();
        let set = |options: &mut Options| {
            options.work_directory = at;
            set(options);
        };
        let served = Served::with_keys(fill, set, Some(Box::new(Keys)));
        Self { served, work }
    }

    /// Sends a request as somebody: a key, or "" for the owner.
    pub(super) fn ask(&self, who: &str, method: &str, path: &str, body: &Value) -> Answer {
        if who.is_empty() {
            return self.served.as_owner(method, path, body);
        }
        let key = format!("Bearer {who}");
        let headers = [
            ("authorization", key.as_str()),
            ("content-type", "application/json"),
        ];
        self.served
            .send(method, path, &headers, body.to_string().as_bytes())
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("", "POST", path, body)
    }

    /// Starts a run, and gives its id.
    #[track_caller]
    pub(super) fn start(&self, body: &Value) -> String {
        self.start_as("", body)
    }

    #[track_caller]
    pub(super) fn start_as(&self, who: &str, body: &Value) -> String {
        let answer = self.ask(who, "POST", "/api/v1/executions", body);
        assert_eq!(answer.status, 202, "{}", answer.text());
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        let at = format!("/api/v1/executions/{id}");
        assert_eq!(answer.header("location"), Some(at.as_str()));
        id
    }

    /// The run as the owner sees it.
    #[track_caller]
    pub(super) fn see(&self, id: &str) -> Value {
        let answer = self.ask("", "GET", &format!("/api/v1/executions/{id}"), &json!({}));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// Does something with a run.
    pub(super) fn act(&self, who: &str, id: &str, what: &str, body: &Value) -> Answer {
        self.ask(
            who,
            "POST",
            &format!("/api/v1/executions/{id}/{what}"),
            body,
        )
    }

    /// Waits until a run is as it should be.
    #[track_caller]
    pub(super) fn until(&self, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Value::Null;
        let done = within(|| {
            seen = self.see(id);
            is_so(&seen)
        });
        assert!(done, "{seen:#}");
        seen
    }

    /// Waits until a run has this status.
    #[track_caller]
    pub(super) fn until_is(&self, id: &str, status: &str) -> Value {
        self.until(id, |run| run["status"] == status)
    }

    pub(super) fn transcript(&self, id: &str) -> String {
        let id = quipu_model::RunId::new(id).unwrap();
        let path = Storage::at(self.served.home()).path_of(&id);
        std::fs::read_to_string(path).unwrap_or_default()
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work.path().join(name)).unwrap_or_default()
    }
}

/// Whether something becomes true in some seconds.
pub(super) fn within(mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(15) {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Whether a process is there, and not only waits to be forgotten.
pub(super) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit_once(')')
            .unwrap()
            .1
            .trim_start()
            .starts_with('Z')
    })
}
