//! Parse: the spec files as they stand, in Kafka's JSON dialect.

use crate::Error;
use serde::Deserialize;
use std::path::Path;

/// One message spec.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Message {
    /// The API key; headers have none.
    pub api_key: Option<i16>,
    /// `request`, `response` or `header`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who offers the API.
    #[serde(default)]
    pub listeners: Vec<String>,
    /// Name with its `Request` or `Response` suffix.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub about: String,
    /// All versions.
    pub valid_versions: String,
    /// Versions on their way out; not used.
    pub deprecated_versions: Option<String>,
    /// Versions with tagged fields and compact lengths.
    pub flexible_versions: String,
    /// Whether the last version may still change.
    #[serde(default)]
    pub latest_version_unstable: bool,
    /// Structs used in several places.
    #[serde(default)]
    pub common_structs: Vec<Struct>,
    /// Top-level fields.
    pub fields: Vec<Field>,
}

/// A struct that several fields share.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Struct {
    /// Type name.
    pub name: String,
    /// Versions in which it occurs.
    pub versions: String,
    /// What it is for.
    #[serde(default)]
    pub about: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// One field.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Field {
    /// Name in CamelCase.
    pub name: String,
    /// `int32`, `[]Topic`, ...
    #[serde(rename = "type")]
    pub ty: String,
    /// Versions that carry it.
    pub versions: String,
    /// Versions in which it may be null.
    pub nullable_versions: Option<String>,
    /// Tag number.
    pub tag: Option<u32>,
    /// Versions in which it is tagged.
    pub tagged_versions: Option<String>,
    /// Overrides the message's flexible versions for this field.
    pub flexible_versions: Option<String>,
    /// Default value.
    pub default: Option<serde_json::Value>,
    /// Whether it may be dropped silently in versions without it.
    #[serde(default)]
    pub ignorable: bool,
    /// What kind of name or id it is; documentation only.
    pub entity_type: Option<String>,
    /// Whether it is (part of) the key of its array.
    #[serde(default)]
    pub map_key: bool,
    /// Whether Java avoids a copy; all our byte fields do.
    #[serde(default)]
    pub zero_copy: bool,
    /// What it is for.
    #[serde(default)]
    pub about: String,
    /// Fields of an inline struct.
    #[serde(default)]
    pub fields: Vec<Field>,
}

/// One error code.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ErrorCode {
    /// `NOT_LEADER_OR_FOLLOWER`
    pub name: String,
    /// Its number.
    pub code: i16,
    /// Whether Kafka's clients may try again.
    pub retriable: bool,
    /// Whether metadata is stale when it comes.
    #[serde(default)]
    pub refresh_metadata: bool,
    /// What it means.
    #[serde(default)]
    pub about: String,
}

/// All message specs of a folder, in name order.
///
/// # Errors
/// Unreadable files, invalid JSON, unknown properties.
pub fn read_dir(dir: &Path) -> Result<Vec<Message>, Error> {
    let io = |e| Error::Io(dir.to_owned(), e);
    let entries: Result<Vec<_>, _> = std::fs::read_dir(dir).map_err(io)?.collect();
    let mut paths: Vec<_> = entries.map_err(io)?.into_iter().map(|e| e.path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "json"));
    paths.sort();
    paths.iter().map(|p| read_json(p)).collect()
}

/// The error codes.
///
/// # Errors
/// As [`read_dir`].
pub fn read_errors(path: &Path) -> Result<Vec<ErrorCode>, Error> {
    read_json(path)
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, Error> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::Io(path.to_owned(), e))?;
    serde_json::from_str(&text).map_err(|e| Error::Json(path.to_owned(), e))
}
