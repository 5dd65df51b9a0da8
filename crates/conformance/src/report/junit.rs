//! The report for build servers.

use super::{CaseResult, Report, Verdict};
use std::fmt::Write;

pub(super) fn render(report: &Report) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> std::fmt::Result {
    let (tests, failed, skipped) = (report.results.len(), report.failed(), report.not_supported());
    let seconds = report.time.as_secs_f64();
    writeln!(
        out,
        "<testsuite name=\"kafka-share-conformance\" tests=\"{tests}\" failures=\"{failed}\" errors=\"0\" \
         skipped=\"{skipped}\" time=\"{seconds:.3}\" hostname=\"{}\">",
        escape(&report.cluster)
    )?;
    for result in &report.results {
        case(result, out)?;
    }
    writeln!(out, "</testsuite>")
}

fn case(result: &CaseResult, out: &mut String) -> std::fmt::Result {
    let ids = result.case.ids.join(" ");
    let seconds = result.time.as_secs_f64();
    write!(out, "  <testcase classname=\"{ids}\" name=\"{}\" time=\"{seconds:.3}\"", result.case.name)?;
    match &result.verdict {
        Verdict::Passed => writeln!(out, "/>"),
        Verdict::NotSupported(why) => {
            writeln!(out, "><skipped message=\"{}\"/></testcase>", escape(why))
        }
        Verdict::Failed(why) => {
            let lines = escape(&result.transcript.join("\n"));
            writeln!(out, "><failure message=\"{}\">{lines}</failure></testcase>", escape(why))
        }
    }
}

/// XML text: the five entities, and no character that XML 1.0 does not allow.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
