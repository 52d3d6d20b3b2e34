//! The suite, over sockets.

use std::path::Path;
use std::sync::Arc;

use quipu_record::SystemClock;
use quipu_redact::rule::{Pattern, Sample, expand};
use quipu_redact::{Engine, Kind, Rule, RuleSet};
use quipu_submit::keys::{NewKey, Scope, Scopes};
use quipu_submit::protocol::Limits;
use quipu_submit::server::{Disk, Memory, Service, Storage};
use quipu_submit::testkit::{Host, Leaky, Report, Subjects, conformance};
use quipu_submit::{EngineScan, KeyStore};

/// One rule, of a vendor that there is not.
fn rules() -> RuleSet {
    let pattern = Pattern::Regex(r"\bacme_[0-9A-Za-z]{24}\b".into());
    let rule = Rule {
        label: "acme".into(),
        keywords: vec!["acme_".into()],
        ..Rule::new("acme-token", Kind::Secret, pattern)
    };
    RuleSet {
        rules: vec![rule],
        allow: Vec::new(),
    }
}

/// A server with these keys that looks for that one secret.
pub(crate) fn service<S: Storage>(storage: S, keys: KeyStore) -> Service<S, SystemClock> {
    let engine = Engine::new(&rules(), |_| true).unwrap();
    let limits = Limits {
        encoded_bytes: 1 << 20,
        document_bytes: 8 << 20,
        ..Limits::default()
    };
    let scan = Box::new(EngineScan::for_secrets(engine));
    Service::new(storage, SystemClock, Box::new(keys), scan).with_limits(limits)
}

fn subjects(store: &KeyStore) -> Subjects {
    let make = |scope| {
        let new = NewKey {
            scopes: Scopes::new([scope]),
            ..NewKey::default()
        };
        store.make(new, &SystemClock).unwrap().1
    };
    let revoked = make(Scope::Submit);
    store
        .revoke(&revoked.id().to_string(), &SystemClock)
        .unwrap();
    let Sample { text, secret, .. } =
        expand("export TOKEN=«acme_{alnum:24}» # for the tests", 7).unwrap();
    let secret = text[secret.unwrap()].to_owned();
    Subjects {
        key: make(Scope::Submit),
        other: make(Scope::Submit),
        revoked,
        reader: make(Scope::Read),
        admin: make(Scope::Admin),
        leak: Leaky {
            text,
            secret,
            rule: "acme-token".into(),
        },
    }
}

fn tried<S: Storage + 'static>(storage: S, directory: &Path) -> Report {
    let store = KeyStore::at(directory.join("keys.jsonl"));
    let subjects = subjects(&store);
    let host = Host::start(Arc::new(service(storage, store))).unwrap();
    conformance(&host.url(), &subjects)
}

fn is_passed(report: &Report) {
    assert_eq!(report.failed, [], "{:?}", report.passed);
    assert_eq!(report.skipped, [] as [&str; 0]);
    assert_eq!(report.passed.len(), 28);
}

#[test]
fn the_server_conforms() {
    let directory = tempfile::tempdir().unwrap();
    is_passed(&tried(Memory::default(), directory.path()));
}

#[test]
fn the_server_on_disk_conforms_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("submissions");
    is_passed(&tried(Disk::open(&root).unwrap(), directory.path()));
    assert_eq!(std::fs::read_dir(root.join("tmp")).unwrap().count(), 0);
    // What was abandoned in the middle by the suite is thrown away in a day; nothing else is left.
    let scanned = Disk::scan_below(&root, None, 1000).unwrap();
    assert!(scanned.is_end && scanned.found.len() > 20);
}
