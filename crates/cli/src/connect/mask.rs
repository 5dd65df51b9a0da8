//! Secrets do not leave the process: they are hidden in every answer.

use kafka_share_connect::Properties;
use serde_json::{Map, Value};

const HIDDEN: &str = "[hidden]";
/// Parts of names whose values are secrets.
const SECRET: &[&str] = &[
    "password",
    "secret",
    "token",
    "jaas",
    "credential",
    "passphrase",
    "private",
    "ssl.keystore.key",
    "apikey",
    "api.key",
];

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // An API key of Kafka's protocol is a number.
    name != "share.acknowledgement.transaction.api.key" && SECRET.iter().any(|part| name.contains(part))
}

/// Settings with secrets hidden, also the password in a URL.
pub(super) fn properties(properties: &Properties) -> Value {
    let shown = |(name, value): (&String, &String)| {
        let value = if is_secret(name) { HIDDEN.to_owned() } else { text(value) };
        (name.clone(), Value::String(value))
    };
    Value::Object(properties.iter().map(shown).collect::<Map<_, _>>())
}

/// A text without what stands after `user:` in URLs, and after `password=` in connection strings.
pub(super) fn text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "/?#\"'".contains(c)).unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((user, host)) => {
                let name = user.split(':').next().unwrap_or_default();
                shown.push_str(&format!("{name}:{HIDDEN}@{host}"));
            }
            None => shown.push_str(authority),
        }
        rest = tail;
    }
    shown.push_str(rest);
    assigned(&shown)
}

fn assigned(text: &str) -> String {
    const WORD: &str = "password=";
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.to_ascii_lowercase().find(WORD) {
        let (before, after) = rest.split_at(at + WORD.len());
        shown.push_str(before);
        shown.push_str(HIDDEN);
        let end = match after.chars().next() {
            Some(quote @ ('"' | '\'')) => after[1..].find(quote).map_or(after.len(), |end| end + 2),
            _ => after.find(|c: char| c.is_whitespace() || "&;,".contains(c)).unwrap_or(after.len()),
        };
        rest = &after[end..];
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        for (given, shown) in [
            ("postgres://me:pw@host:5432/db?x=1", "postgres://me:[hidden]@host:5432/db?x=1"),
            ("cannot reach postgresql://me:p@w@h/db: refused", "cannot reach postgresql://me:[hidden]@h/db: refused"),
            ("host=h password='p w' user=u", "host=h password=[hidden] user=u"),
            (
                "jdbc:postgresql://h/db?user=u&PASSWORD=pw&ssl=true",
                "jdbc:postgresql://h/db?user=u&PASSWORD=[hidden]&ssl=true",
            ),
            ("http://127.0.0.1:8083", "http://127.0.0.1:8083"),
            ("nothing", "nothing"),
            ("password=", "password=[hidden]"),
        ] {
            assert_eq!(text(given), shown);
        }
        let names = ["connection.password", "sasl.jaas.config", "auth.Token", "consumer.override.ssl.key.password"];
        let all: Properties = names.iter().map(|n| ((*n).to_owned(), "s3cret".to_owned())).collect();
        let shown = properties(&all).to_string();
        assert!(!shown.contains("s3cret"), "{shown}");
        let plain = Properties::from([("key.converter".to_owned(), "string".to_owned())]);
        assert_eq!(properties(&plain)["key.converter"], "string");
    }
}
