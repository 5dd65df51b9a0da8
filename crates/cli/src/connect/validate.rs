//! `kshare connect validate`: all that is wrong with the files of a worker and its connectors.

use super::{mask, text_of, worker_properties};
use crate::exit::Failure;
use clap::Args;
use kafka_share_connect::{ConnectorConfig, Problem, Validation, sinks, validate};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Options of `kshare connect validate`.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 nothing is wrong (settings without effect are told), 2 something is.")]
pub(super) struct ValidateArgs {
    /// Properties of the worker
    #[arg(value_name = "WORKER.PROPERTIES")]
    worker: PathBuf,
    /// Connectors, as JSON
    #[arg(value_name = "SINK.JSON", required = true)]
    connectors: Vec<PathBuf>,
    /// JSON on standard output
    #[arg(long)]
    json: bool,
}

/// What is to be said of one file.
struct Checked {
    file: String,
    result: Validation,
}

pub(super) fn run(args: &ValidateArgs) -> Result<(), Failure> {
    let worker = worker_properties(&args.worker)?;
    let mut all = Vec::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for path in &args.connectors {
        let mut checked = check(&worker, path)?;
        let name = checked.result.connector.clone();
        if let Some(other) = names.insert(name.clone(), checked.file.clone()).filter(|_| !name.is_empty()) {
            let message = format!("name={name}: the connector of {other} has the same name");
            checked.result.errors.push(Problem { setting: "name".into(), message });
        }
        all.push(checked);
    }
    let mut out = std::io::stdout().lock();
    let told = if args.json { writeln!(out, "{}", as_json(&all)) } else { table(&mut out, &all) };
    told.map_err(|e| Failure::output(&e))?;
    match all.iter().map(|c| c.result.errors.len()).sum::<usize>() {
        0 => Ok(()),
        1 => Err(Failure::usage("one setting is wrong")),
        n => Err(Failure::usage(format_args!("{n} settings are wrong"))),
    }
}

fn check(worker: &kafka_share_connect::Properties, path: &Path) -> Result<Checked, Failure> {
    let file = path.display().to_string();
    let result = match ConnectorConfig::properties_of(&text_of(path)?) {
        Ok(properties) => validate(worker, &properties, sinks::connector),
        Err(error) => Validation {
            errors: vec![Problem { setting: String::new(), message: error.to_string() }],
            ..Validation::default()
        },
    };
    Ok(Checked { file, result })
}

fn as_json(all: &[Checked]) -> Value {
    let rows = |problems: &[Problem]| -> Vec<Value> {
        problems.iter().map(|p| json!({ "setting": p.setting, "message": mask::text(&p.message) })).collect()
    };
    let connectors: Vec<Value> = all
        .iter()
        .map(|c| {
            json!({
                "file": c.file, "connector": c.result.connector, "errors": rows(&c.result.errors),
                "warnings": rows(&c.result.warnings),
            })
        })
        .collect();
    let errors: usize = all.iter().map(|c| c.result.errors.len()).sum();
    json!({ "connectors": connectors, "error_count": errors })
}

fn table(out: &mut impl Write, all: &[Checked]) -> std::io::Result<()> {
    for Checked { file, result } in all {
        let name = if result.connector.is_empty() { "without a name" } else { &result.connector };
        writeln!(
            out,
            "{file}: connector {name}: {} wrong, {} without effect",
            result.errors.len(),
            result.warnings.len()
        )?;
        let rows = result.errors.iter().map(|p| ("wrong", p)).chain(result.warnings.iter().map(|p| ("no effect", p)));
        let width = result.errors.iter().chain(&result.warnings).map(|p| p.setting.len()).max().unwrap_or(0).min(60);
        for (what, problem) in rows {
            writeln!(out, "  {what:<9}  {:width$}  {}", problem.setting, mask::text(&problem.message))?;
        }
    }
    Ok(())
}
