//! The report for people.

use super::{Report, Verdict};
use std::fmt::Write;

pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> std::fmt::Result {
    for result in &report.results {
        let (word, why) = match &result.verdict {
            Verdict::Passed => ("passed", None),
            Verdict::Failed(why) => ("FAILED", Some(why)),
            Verdict::NotSupported(why) => ("not supported", Some(why)),
        };
        let ids = result.case.ids.join(" ");
        writeln!(out, "{word:<13} {:<44} {:>6.2} s  {ids}", result.case.name, result.time.as_secs_f64())?;
        if let Some(why) = why {
            writeln!(out, "              {why}")?;
        }
        for line in &result.transcript {
            writeln!(out, "              | {line}")?;
        }
    }
    writeln!(out, "\n{} in {:.1} s", report.cluster, report.time.as_secs_f64())?;
    writeln!(out, "{} passed, {} failed, {} not supported", report.passed(), report.failed(), report.not_supported())
}
