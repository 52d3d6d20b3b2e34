//! The server of this crate passes the suite that every server has to.

use std::sync::Arc;

use quipu_record::SystemClock;
use quipu_redact::rule::{Pattern, expand};
use quipu_redact::{Engine, Kind, Rule, RuleSet};
use quipu_submit::protocol::Limits;
use quipu_submit::server::{Memory, Service};
use quipu_submit::testkit::{Host, Leaky, Subjects, conformance};
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

#[test]
fn the_server_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let store = KeyStore::at(directory.path().join("keys.jsonl"));
    let make = |label| store.create(label, &SystemClock).unwrap().1;
    let (key, other, revoked) = (make("one"), make("two"), make("three"));
    store
        .revoke(&revoked.id().to_string(), &SystemClock)
        .unwrap();
    let engine = Engine::new(&rules(), |_| true).unwrap();
    let limits = Limits {
        encoded_bytes: 1 << 20,
        document_bytes: 8 << 20,
        ..Limits::default()
    };
    let scan = Box::new(EngineScan::for_secrets(engine));
    let service = Service::new(Memory::default(), SystemClock, Box::new(store), scan);
    let host = Host::start(Arc::new(service.with_limits(limits))).unwrap();
    let sample = expand("export TOKEN=«acme_{alnum:24}» # for the tests", 7).unwrap();
    let secret = sample.text[sample.secret.clone().unwrap()].to_owned();
    let subjects = Subjects {
        key,
        other,
        revoked,
        leak: Leaky {
            text: sample.text,
            secret,
            rule: "acme-token".into(),
        },
    };
    let report = conformance(&host.url(), &subjects);
    assert_eq!(report.failed, [], "{:?}", report.passed);
    assert_eq!(report.skipped, [] as [&str; 0]);
    assert_eq!(report.passed.len(), 18);
}
