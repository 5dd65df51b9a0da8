//! Generator that turns protocol-specs into the messages crate: parse, intermediate form, emit.
//!
//! `cargo run -p kafka-share-codegen` rewrites `crates/messages/src/gen`; a test regenerates in memory and compares.

pub mod emit;
pub mod ir;
pub mod names;
pub mod spec;
pub mod versions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why generation stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, std::io::Error),
    /// A spec is not valid JSON of the expected form.
    #[error("{0}: {1}")]
    Json(PathBuf, serde_json::Error),
    /// A spec says something the generator does not support.
    #[error("{0}: {1}")]
    Spec(String, String),
    /// `rustfmt` failed.
    #[error("rustfmt: {0}")]
    Format(String),
}

/// Reads all specs under `specs` and returns the generated files, by file name, already formatted.
///
/// # Errors
/// Unreadable or unsupported specs, or a missing `rustfmt`.
pub fn generate(specs: &Path) -> Result<BTreeMap<String, String>, Error> {
    let mut messages = Vec::new();
    for dir in ["messages", "drafts/kip-1289"] {
        for parsed in spec::read_dir(&specs.join(dir))? {
            messages.push(ir::lower(&parsed)?);
        }
    }
    messages.sort_by(|a, b| (a.key, &a.name).cmp(&(b.key, &b.name)));
    let mut files = BTreeMap::new();
    for message in &messages {
        files.insert(format!("{}.rs", message.module), emit::message(message));
    }
    files.insert("mod.rs".into(), emit::table::module_list(&messages));
    files.insert("api_table.rs".into(), emit::table::api_table(&messages)?);
    files.insert("dispatch.rs".into(), emit::table::dispatch(&messages));
    let errors = spec::read_errors(&specs.join("errors.json"))?;
    files.insert("error_codes.rs".into(), emit::errors::error_codes(&errors));
    files.into_iter().map(|(name, text)| Ok((name, emit::format(&text)?))).collect()
}
