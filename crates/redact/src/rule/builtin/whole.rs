//! Nothing of a value is left: a secret that is half removed is worse than one that was missed.

use std::sync::LazyLock;

use proptest::prelude::*;

use crate::rule::{Kind, RuleSet, expand};
use crate::{Certainty, Context, Engine, Scratch};

/// How many characters in a row are too many.
const PIECE: usize = 4;

static SECRETS: LazyLock<Engine> = LazyLock::new(|| {
    let rules = RuleSet::builtin();
    Engine::new(&rules, |rule| rule.kind == Kind::Secret).unwrap_or_else(|error| panic!("{error}"))
});

/// What is left of a text.
fn left(scratch: &mut Scratch, text: &str) -> String {
    let mut found = Vec::new();
    SECRETS.scan(scratch, text, Context::default(), &mut found);
    found.retain(|found| found.certainty == Certainty::Sure);
    let (mut out, mut at) = (String::new(), 0);
    for found in found {
        out.push_str(&text[at..found.span.start]);
        out.push('\0');
        at = found.span.end;
    }
    out + &text[at..]
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Fate {
    Gone,
    Half,
    There,
}

/// What became of a value. `same` is what other values of its kind have as well, and what is around it.
fn fate(scratch: &mut Scratch, text: &str, value: &str, same: &str) -> Fate {
    let left = left(scratch, text);
    let letters: Vec<char> = value.chars().collect();
    let own: Vec<String> = letters
        .windows(PIECE)
        .map(|window| window.iter().collect())
        .filter(|piece: &String| !same.contains(piece.as_str()))
        .collect();
    match own
        .iter()
        .filter(|piece| left.contains(piece.as_str()))
        .count()
    {
        0 => Fate::Gone,
        there if there == own.len() => Fate::There,
        _ => Fate::Half,
    }
}

/// What is around a text.
const AROUND: &[(&str, &str)] = &[
    ("", ""),
    ("", "\n"),
    ("x = 1\n", "\r\ny = 2\r\n"),
    ("```\n", "\n```"),
    ("$ ", "\nok\n"),
    ("{\"output\":\"", "\\n\"}"),
    ("", " \u{2014} see above"),
    ("\u{1b}[32m", "\u{1b}[0m"),
];

#[test]
fn no_four_characters_of_an_example_are_left_whatever_is_around_it() {
    let mut scratch = Scratch::default();
    let (mut half, mut missed, mut all) = (Vec::new(), Vec::new(), 0);
    for rule in &SECRETS.rules().rules {
        for template in &rule.examples {
            // A token may end in whatever its alphabet has.
            let sign = template.replace("}»", "}-»");
            let ends = template.contains("{b64u:") && template.contains("}»");
            let templates = [Some(template), ends.then_some(&sign)];
            for (number, template) in templates.into_iter().enumerate() {
                let Some(template) = template else { continue };
                for (seed, (before, behind)) in (0..).zip(AROUND) {
                    let sample = expand(template, seed).unwrap();
                    let mut value = sample.text[sample.secret.clone().unwrap()].to_owned();
                    let mut body = sample.text.clone();
                    if number == 1 {
                        // The last character is the sign, and the value is as long as before.
                        let at = sample.secret.clone().unwrap().end - 2;
                        body.remove(at);
                        value.remove(value.len() - 2);
                    }
                    // Several lines are no line of a session any more.
                    if before.starts_with('{') && body.contains(['\n', '"', '\\']) {
                        continue;
                    }
                    let text = format!("{before}{body}{behind}");
                    let rest = body.replace(&value, "");
                    let same = format!("{template}{before}{behind}{rest}");
                    all += 1;
                    let says = || format!("{}: {template} in {before:?}", rule.id);
                    match fate(&mut scratch, &text, &value, &same) {
                        Fate::Gone => {}
                        Fate::Half => half.push(says()),
                        Fate::There => missed.push(says()),
                    }
                }
            }
        }
    }
    assert!(
        half.is_empty(),
        "{}\n{} of {all}",
        half.join("\n"),
        half.len()
    );
    // Random characters spell a word now and then.
    assert!(
        missed.len() * 100 <= all,
        "{}\n{} of {all}",
        missed.join("\n"),
        missed.len()
    );
}

/// Where passwords are given, by the syntax around them. `@@` is the password.
const CARRIERS: &[&str] = &[
    "DB_PASSWORD=@@\nHOME=/home/ada",
    "export DB_PASSWORD='@@'",
    "db.password=@@\ndb.user=ada",
    "spring:\n  datasource:\n    password: @@\n    user: ada",
    "password: \"@@\"\n",
    "[db]\npassword = \"@@\"\nuser = \"ada\"",
    "{\"user\":\"ada\",\"password\":\"@@\",\"port\":1}",
    "{\\\"user\\\":\\\"ada\\\",\\\"password\\\":\\\"@@\\\"}",
    "dbtool --user ada --password @@ --dump",
    "dbtool --password='@@' --dump",
    "curl -u ada:@@ https://api.acme.test/v1",
    "curl --user 'ada:@@' https://api.acme.test/v1",
    "mysql -u root -p@@ app",
    "docker login -u ada -p @@ registry.acme.test",
    "sshpass -p '@@' ssh ada@host",
    "sshpass -p @@ ssh ada@host",
    "redis-cli -h cache -a @@ ping",
    "ldapsearch -x -D cn=admin -w @@ -b dc=acme",
    "keytool -list -keystore a.jks -storepass @@",
    "openssl rsa -in key.pem -passin pass:@@ -out x",
    "echo '@@' | sudo -S id",
    "<server><password>@@</password></server>",
    "my password is @@ and it works",
    "the password: `@@`",
];

fn password() -> impl Strategy<Value = String> {
    // With a digit, letters and a sign; what a shell would read in another way is within quotes in real life.
    (
        "[A-Z][a-z]{2,5}",
        "[0-9]{1,3}",
        "[#%&*+,.:=?@^_~$!-]",
        "[A-Za-z0-9]{3,8}",
        "[#%&*+.:=?@^_~$!-]?",
        "[a-z0-9]{2,6}",
    )
        .prop_map(|(a, b, c, d, e, f)| format!("{a}{b}{c}{d}{e}{f}"))
}

/// Whether a password, without quotes around it, could as well be a shorter one with a pair behind it: `abc1&user=ada`.
fn reads_as_two_pairs(password: &str) -> bool {
    let mut parts = password.split(['&', ',']).skip(1);
    parts.any(|part| part.find(['=', ':']).is_some_and(|at| at > 0))
}

proptest! {
    #[test]
    fn no_password_is_half_removed(password in password(), carrier in prop::sample::select(CARRIERS)) {
        prop_assume!(carrier.contains(['"', '\'', '`']) || !reads_as_two_pairs(&password));
        let text = carrier.replace("@@", &password);
        let fate = fate(&mut Scratch::default(), &text, &password, carrier);
        prop_assert_ne!(fate, Fate::Half, "{}", text);
    }
}

#[test]
fn chosen_passwords_are_found_in_every_carrier() {
    let mut scratch = Scratch::default();
    let mut missed = Vec::new();
    for carrier in CARRIERS {
        for password in [
            "Tr0ub4dor&3x",
            "Kx9#mP2$vLq",
            "Summer2024!",
            "dragon1984",
            "P@55word77#",
            "Winter_19@lake",
            "horse99Staple?",
        ] {
            let text = carrier.replace("@@", password);
            let fate = fate(&mut scratch, &text, password, carrier);
            if fate != Fate::Gone {
                missed.push(format!("{text:?}: {fate:?}"));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Names that leave no doubt, in the syntax they are given values by. `@@` is the value.
const NAMED: &[&str] = &[
    "Authorization: Bearer @@",
    "curl -sS -H 'Authorization: Bearer @@' https://api.acme.test/v1",
    "curl -H \"X-Api-Key: @@\" https://api.acme.test/v1",
    "ACME_API_KEY=@@\nHOME=/home/ada",
    "  client_secret: @@\n  region: eu",
    "{\"clientId\":\"app\",\"clientSecret\":\"@@\"}",
    "acme-cli login --password @@ --region eu",
    "GET https://api.acme.test/v1/items?api_secret=@@&page=2",
    "here is the Acme API key: @@, please rotate it",
    "our client secret is @@.",
];

#[test]
fn random_values_are_found_behind_every_name_whatever_their_alphabet() {
    let mut scratch = Scratch::default();
    let mut wrong = Vec::new();
    for carrier in NAMED {
        for set in ["lower", "upper", "alpha", "lownum", "alnum", "hex", "b32"] {
            for (length, least) in [(20, 92), (32, 97), (43, 98)] {
                let form = format!("{{{set}:{length}}}");
                let gone = (0..100).filter(|seed| {
                    let value = expand(&form, *seed).unwrap().text;
                    let text = carrier.replace("@@", &value);
                    fate(&mut scratch, &text, &value, carrier) == Fate::Gone
                });
                let gone = gone.count();
                if gone < least {
                    wrong.push(format!("{carrier:?} {form}: {gone} of 100"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn colours_inside_a_value_hide_nothing() {
    let mut scratch = Scratch::default();
    let mut wrong = Vec::new();
    for escape in ["\u{1b}", "\\u001b", "\\x1b", "\\033", "\\e"] {
        for template in [
            "token ghp_{alnum:18}@{alnum:18} here",
            "ACME_API_KEY=@{alnum:16}@{alnum:16}@",
            "  api_key: {alnum:9}@{alnum:20}",
        ] {
            let text = expand(template, 5).unwrap().text;
            let coloured = text.replace('@', &format!("{escape}[1;31m"));
            let left = left(&mut scratch, &coloured);
            for part in text
                .split(['@', ' ', '=', '_'])
                .filter(|part| part.len() >= 9)
            {
                if left.contains(&part[..9]) {
                    wrong.push(format!("{escape:?} {template}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
