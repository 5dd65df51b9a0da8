//! Which messages and versions the specs of `protocol-specs/messages` list.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde_json::Value;

use crate::java::crate_dir;
use crate::vectors::Kind;

/// Name and valid versions of each message, by kind and API key (-1 for headers).
pub type Catalogue = BTreeMap<(Kind, i16), (String, RangeInclusive<i16>)>;

/// The folder `protocol-specs/messages`.
#[must_use]
pub fn messages_dir() -> PathBuf {
    crate_dir().join("../protocol-specs/messages")
}

/// Reads the head of every spec.
///
/// # Panics
/// If a spec cannot be read or lacks a name, a kind or its versions.
#[must_use]
pub fn catalogue() -> Catalogue {
    let entries = fs::read_dir(messages_dir()).expect("protocol-specs/messages is there");
    entries
        .map(|entry| {
            let path = entry.expect("readable folder").path();
            let text = fs::read_to_string(&path).expect("readable spec");
            let spec: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            head(&spec)
        })
        .collect()
}

fn head(spec: &Value) -> ((Kind, i16), (String, RangeInclusive<i16>)) {
    let name = spec["name"].as_str().expect("a spec has a name");
    let kind = match (spec["type"].as_str(), name) {
        (Some("request"), _) => Kind::Request,
        (Some("response"), _) => Kind::Response,
        (_, "RequestHeader") => Kind::RequestHeader,
        (_, "ResponseHeader") => Kind::ResponseHeader,
        other => panic!("{other:?} is no kind of message"),
    };
    let key = spec["apiKey"].as_i64().map_or(-1, |k| i16::try_from(k).expect("an API key fits 16 bits"));
    let range = spec["validVersions"].as_str().expect("a spec has versions");
    let (low, high) = range.split_once('-').unwrap_or((range, range));
    let parse = |v: &str| v.parse::<i16>().expect("a version is a number");
    ((kind, key), (name.to_owned(), parse(low)..=parse(high)))
}
