//! The report for programs.

use super::{CaseResult, Report, Verdict};
use serde_json::{Value, json};

pub(super) fn render(report: &Report) -> String {
    let value = json!({
        "cluster": report.cluster,
        "seconds": report.time.as_secs_f64(),
        "passed": report.passed(),
        "failed": report.failed(),
        "not_supported": report.not_supported(),
        "cases": report.results.iter().map(case).collect::<Vec<Value>>(),
    });
    format!("{value:#}\n")
}

fn case(result: &CaseResult) -> Value {
    let (verdict, reason) = match &result.verdict {
        Verdict::Passed => ("passed", None),
        Verdict::Failed(why) => ("failed", Some(why)),
        Verdict::NotSupported(why) => ("not_supported", Some(why)),
    };
    let mut value = json!({
        "name": result.case.name,
        "ids": result.case.ids,
        "kip": result.case.kip,
        "verdict": verdict,
        "seconds": result.time.as_secs_f64(),
    });
    if let Some(reason) = reason {
        value["reason"] = json!(reason);
    }
    if !result.transcript.is_empty() {
        value["transcript"] = json!(result.transcript);
    }
    value
}
