//! Judges a broker: `cargo run -p kafka-share-conformance --example judge -- HOST:PORT [ID or case name ..]`.

use kafka_share_conformance::{Runner, Verdict, cases};
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(server) = args.next() else {
        eprintln!("usage: judge HOST:PORT [ID or case name ..]; JUDGE_JSON=FILE writes the JSON report too");
        return ExitCode::from(2);
    };
    let patterns: Vec<String> = args.collect();
    let chosen = match patterns.is_empty() {
        true => cases::all(),
        false => patterns.iter().flat_map(|p| cases::matching(p)).collect(),
    };
    let runner = Runner::new(kafka_share::ClientConfig::new(&server)).cluster_name(&server);
    let progress = |r: &kafka_share_conformance::CaseResult| {
        let word = if matches!(r.verdict, Verdict::Failed(_)) { "FAILED" } else { "done" };
        eprintln!("{word} {} in {:.2} s", r.case.name, r.time.as_secs_f64());
    };
    match runner.run(&chosen, progress).await {
        Ok(report) => {
            print!("{}", report.text());
            if let Ok(path) = std::env::var("JUDGE_JSON")
                && let Err(error) = std::fs::write(&path, report.json())
            {
                eprintln!("{path}: {error}");
                return ExitCode::FAILURE;
            }
            ExitCode::from(u8::from(report.failed() > 0))
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
