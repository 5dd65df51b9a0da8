//! The rules of `protocol-specs/requirements`, and where the sources cite them.

use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its id, `FAMILY-NUMBER`.
    pub id: String,
    /// What must hold.
    pub must: String,
    /// `MUST` or `SHOULD`.
    pub level: String,
    /// Number of the KIP it comes from.
    pub kip: u16,
    /// First Kafka release that it holds for, or `draft`.
    pub since: String,
    /// Document or observation.
    pub source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule: Vec<Rule>,
}

/// All rules, in the order of files and lines.
///
/// # Panics
/// If a file cannot be read or is not as it must be; the message names it.
#[must_use]
pub fn load() -> Vec<Rule> {
    let dir = root().join("protocol-specs/requirements");
    let mut files: Vec<PathBuf> =
        fs::read_dir(dir).expect("protocol-specs/requirements is there").map(|e| e.expect("entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let read = |file: &PathBuf| {
        let text = fs::read_to_string(file).expect("readable rules");
        toml::from_str::<File>(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display())).rule
    };
    files.iter().flat_map(read).collect()
}

/// Whether an id has the form `FAMILY-NUMBER`: upper-case words joined by `-`, then two digits or more.
#[must_use]
pub fn is_well_formed(id: &str) -> bool {
    let Some((family, number)) = id.rsplit_once('-') else { return false };
    let word = |w: &str| {
        w.starts_with(|c: char| c.is_ascii_uppercase())
            && w.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
    };
    number.len() >= 2 && number.chars().all(|c| c.is_ascii_digit()) && family.split('-').all(word)
}

/// Citations in the Rust sources, as id and place: comments of the form `//` + `= ID ..`.
///
/// # Panics
/// If a source cannot be read.
#[must_use]
pub fn citations() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["crates", "tests", "fuzz"] {
        collect(&root().join(folder), &mut found);
    }
    found
}

/// Rules that nothing cites yet, with the reason, as the table of `protocol-specs/requirements/NOT-DONE.md` has them.
///
/// # Panics
/// If the table cannot be read.
#[must_use]
pub fn not_done() -> Vec<(String, String)> {
    let path = root().join("protocol-specs/requirements/NOT-DONE.md");
    let text = fs::read_to_string(path).expect("protocol-specs/requirements/NOT-DONE.md is there");
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.trim_end_matches('|').split(" | ").map(str::trim);
        Some((cells.next()?.to_owned(), cells.next()?.to_owned()))
    });
    rows.filter(|(id, _)| is_well_formed(id)).collect()
}

fn collect(dir: &Path, found: &mut Vec<(String, String)>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries {
        let path = entry.expect("entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | "gen" | "corpus" | "artifacts" | "seeds") {
                collect(&path, found);
            }
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).expect("readable source");
            for (number, line) in text.lines().enumerate() {
                let Some(ids) = line.trim_start().strip_prefix("//= ") else { continue };
                let place = format!("{}:{}", path.display(), number + 1);
                found.extend(ids.split_whitespace().map(|id| (id.trim_end_matches(',').to_owned(), place.clone())));
            }
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
