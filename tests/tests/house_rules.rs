//! The house rules as a test: which crate may depend on which, how long files may be, what first line they have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Crate folder, and the workspace crates it may depend on (tests and benches apart).
const ARROWS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("messages", &["wire"]),
    ("codegen", &[]),
    ("core", &["messages", "wire"]),
    ("client", &["core", "messages", "wire"]),
    ("connect", &["client", "core", "messages", "wire"]),
    ("broker", &["messages", "wire"]),
    ("conformance", &["client", "messages", "wire"]),
    ("judge", &["client", "broker", "messages", "wire"]),
    ("bench", &["wire", "messages", "core", "client", "broker", "connect"]),
    ("simulation", &["core", "client", "broker"]),
    ("cli", &["wire", "messages", "core", "client", "connect", "broker", "conformance", "judge"]),
];

/// Crates outside the workspace that a crate must not use, so that its machines stay free of clocks and sockets.
const FOREIGN: &[(&str, &[&str])] =
    &[("wire", &["tokio"]), ("messages", &["tokio"]), ("core", &["tokio", "mio", "socket2"])];

const MAX_LINES: usize = 1000;
const MEDIAN_LINES: usize = 250;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("workspace root")
}

/// Names under `[dependencies]` (and target tables) of a manifest; dev-dependencies are left out.
fn dependencies(manifest: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(manifest).expect("manifest");
    let mut inside = false;
    let mut names = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section == "dependencies" || section.ends_with(".dependencies");
            if let Some(name) = section.strip_prefix("dependencies.") {
                names.push(name.to_owned());
            }
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            names.push(name.trim_matches('"').to_owned());
        }
    }
    names
}

fn package(folder: &str) -> String {
    if folder == "client" { "kafka-share".into() } else { format!("kafka-share-{folder}") }
}

#[test]
fn dependencies_point_one_way() {
    let folders: Vec<&str> = ARROWS.iter().map(|(f, _)| *f).collect();
    let found: Vec<String> = std::fs::read_dir(root().join("crates"))
        .expect("crates")
        .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    for folder in &found {
        assert!(folders.contains(&folder.as_str()), "crates/{folder} has no line in this test");
    }
    for (folder, allowed) in ARROWS {
        let used = dependencies(&root().join("crates").join(folder).join("Cargo.toml"));
        assert!(*folder != "client" || used.len() > 3, "{folder}: no dependencies were read");
        for other in folders.iter().filter(|o| used.contains(&package(o))) {
            assert!(allowed.contains(other), "crates/{folder} must not depend on crates/{other}");
        }
        let foreign = FOREIGN.iter().filter(|(f, _)| f == folder).flat_map(|(_, names)| names.iter());
        for name in foreign {
            assert!(!used.iter().any(|u| u == name), "crates/{folder} must not depend on {name}");
        }
    }
}

#[test]
fn versions_stand_in_one_place() {
    for (folder, _) in ARROWS {
        let text = std::fs::read_to_string(root().join("crates").join(folder).join("Cargo.toml")).expect("manifest");
        let own = text.lines().find(|l| l.contains("version = \""));
        assert_eq!(own, None, "crates/{folder}/Cargo.toml names a version outside the workspace's table");
    }
}

fn rust_files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("folder") {
        let path = entry.expect("entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | "gen" | "data") {
                rust_files(&path, into);
            }
        } else if name.ends_with(".rs") {
            into.push(path);
        }
    }
}

fn is_test(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.contains("/tests/") || text.ends_with("tests.rs") || text.contains("/benches/")
}

/// Lines before the unit tests of a file.
fn lines_without_tests(text: &str) -> usize {
    text.lines().take_while(|l| !l.starts_with("#[cfg(test)]")).count()
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    let mut files = Vec::new();
    rust_files(&root().join("crates"), &mut files);
    rust_files(&root().join("tests"), &mut files);
    assert!(files.len() > 50, "only {} files were found", files.len());
    let mut sizes: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("file");
        assert!(text.starts_with("//!"), "{} does not say its purpose in its first line", path.display());
        let lines = lines_without_tests(&text);
        let limit = if is_test(&path) { 2 * MAX_LINES } else { MAX_LINES };
        assert!(lines <= limit, "{} has {lines} lines without its tests", path.display());
        if !is_test(&path) {
            sizes.insert(path, lines);
        }
    }
    let mut all: Vec<usize> = sizes.values().copied().collect();
    all.sort_unstable();
    let median = all[all.len() / 2];
    assert!(median < MEDIAN_LINES, "the median file has {median} lines");
}
