//! Writes the matrix of cases and brokers from JSON reports:
//! `cargo run -p kafka-share-conformance --example matrix -- 4.4.0=REPORT.json .. > crates/conformance/MATRIX.md`.

use kafka_share_conformance::cases;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Name of a broker, and the verdict of each case.
type Column = (String, BTreeMap<String, &'static str>);

fn main() -> ExitCode {
    let columns: Result<Vec<Column>, String> = std::env::args().skip(1).map(|arg| column(&arg)).collect();
    match columns {
        Ok(columns) if !columns.is_empty() => {
            print!("{}", render(&columns));
            ExitCode::SUCCESS
        }
        Ok(_) => {
            eprintln!("usage: matrix NAME=REPORT.json ..");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn column(arg: &str) -> Result<Column, String> {
    let (name, path) = arg.split_once('=').ok_or_else(|| format!("{arg:?} is not NAME=REPORT.json"))?;
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let report: serde_json::Value = serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))?;
    let cases = report["cases"].as_array().ok_or_else(|| format!("{path} is no report of the suite"))?;
    let verdict = |case: &serde_json::Value| {
        let word = match case["verdict"].as_str() {
            Some("passed") => "passed",
            Some("failed") => "**failed**",
            _ => "-",
        };
        (case["name"].as_str().unwrap_or_default().to_owned(), word)
    };
    Ok((name.to_owned(), cases.iter().map(verdict).collect()))
}

fn render(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut out = String::from(
        "# Cases and brokers\n\nMade by `examples/matrix.rs` from JSON reports of the suite; `-` is not supported, by features, versions \
         or settings of that\nbroker. A test compares the list of cases. What a released broker fails is in \
         [FINDINGS.md](FINDINGS.md).\n\n",
    );
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let head = ["case", "rules"].into_iter().chain(names.iter().copied()).map(str::to_owned).collect();
    out.push_str(&row(head));
    out.push_str(&row(vec!["---".into(); columns.len() + 2]));
    let total = |word: &str| {
        let count = |(_, all): &Column| all.values().filter(|v| **v == word).count().to_string();
        columns.iter().map(count).collect::<Vec<String>>()
    };
    for (label, word) in [("passed", "passed"), ("failed", "**failed**"), ("not supported", "-")] {
        out.push_str(&row([format!("*{label}*"), String::new()].into_iter().chain(total(word)).collect()));
    }
    for case in cases::all() {
        let mut cells = vec![format!("`{}`", case.name), case.ids.join(" ")];
        cells.extend(columns.iter().map(|(_, all)| all.get(case.name).copied().unwrap_or("?").to_owned()));
        out.push_str(&row(cells));
    }
    out
}
