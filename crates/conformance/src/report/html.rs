//! The report as a page: counts, a line for each family of rules, and what failed or was not supported with its reasons.

use super::{CaseResult, Report, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--soft:#8882;--good:#1a7f37;--bad:#cf222e;--dim:#6e7781}\
@media(prefers-color-scheme:dark){:root{--good:#3fb950;--bad:#f85149;--dim:#9198a1}}\
body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}\
p.sub{margin:.2rem 0 1.2rem;color:var(--dim)}\
.counts{display:flex;gap:.8rem;flex-wrap:wrap}.counts div{border:1px solid var(--line);border-radius:.5rem;padding:.5rem 1rem;min-width:7rem}\
.counts b{display:block;font-size:1.6rem}.good{color:var(--good)}.bad{color:var(--bad)}.dim{color:var(--dim)}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.2rem .6rem .2rem 0;border-bottom:1px solid var(--line)}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\
.bar{display:flex;height:.7rem;width:12rem;background:var(--soft);border-radius:.35rem;overflow:hidden}\
.bar i{display:block;background:var(--good)}.bar i.b{background:var(--bad)}\
details{border-bottom:1px solid var(--line);padding:.25rem 0}summary{cursor:pointer}\
code,pre{font:13px/1.4 ui-monospace,monospace}pre{overflow-x:auto;background:var(--soft);padding:.6rem;border-radius:.4rem}\
.why{margin:.2rem 0 .4rem 1.2rem}";

pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> std::fmt::Result {
    let (passed, failed, not_supported) = (report.passed(), report.failed(), report.not_supported());
    let cluster = escape(&report.cluster);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>Share-group conformance of {cluster}</title><style>{STYLE}</style></head><body>\n\
         <h1>Share-group conformance</h1>\n<p class=\"sub\">{cluster}: {} cases in {:.1} s</p>\n\
         <div class=\"counts\"><div class=\"good\"><b>{passed}</b>passed</div>\
         <div class=\"{}\"><b>{failed}</b>failed</div>\
         <div class=\"dim\"><b>{not_supported}</b>not supported</div></div>\n",
        report.results.len(),
        report.time.as_secs_f64(),
        if failed == 0 { "dim" } else { "bad" },
    )?;
    failures(report, out)?;
    families(report, out)?;
    unsupported(report, out)?;
    all(report, out)?;
    writeln!(out, "</body></html>")
}

fn failures(report: &Report, out: &mut String) -> std::fmt::Result {
    let failed = |r: &&CaseResult| matches!(r.verdict, Verdict::Failed(_));
    if report.failed() == 0 {
        return Ok(());
    }
    writeln!(out, "<h2>Failed</h2>")?;
    for result in report.results.iter().filter(failed) {
        let Verdict::Failed(why) = &result.verdict else { continue };
        writeln!(
            out,
            "<details><summary><code>{}</code> <span class=\"dim\">{}</span></summary>\
             <p class=\"why bad\">{}</p><pre>{}</pre></details>",
            escape(result.case.name),
            result.case.ids.join(" "),
            escape(why),
            escape(&result.transcript.join("\n")),
        )?;
    }
    Ok(())
}

/// `SHARE-ACK` of `SHARE-ACK-01`.
fn family(result: &CaseResult) -> &'static str {
    let id = result.case.ids.first().copied().unwrap_or_default();
    id.rsplit_once('-').map_or(id, |(family, _)| family)
}

fn families(report: &Report, out: &mut String) -> std::fmt::Result {
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for result in &report.results {
        let row = counts.entry(family(result)).or_default();
        row[match result.verdict {
            Verdict::Passed => 0,
            Verdict::Failed(_) => 1,
            Verdict::NotSupported(_) => 2,
        }] += 1;
    }
    writeln!(
        out,
        "<h2>By family of rules</h2>\n<table><tr><th>family<th><th class=\"n\">passed<th class=\"n\">failed\
         <th class=\"n\">not supported</tr>"
    )?;
    for (family, [passed, failed, not_supported]) in counts {
        let share = |n: usize| 100 * n / (passed + failed + not_supported).max(1);
        writeln!(
            out,
            "<tr><td>{family}<td><span class=\"bar\"><i style=\"width:{}%\"></i><i class=\"b\" style=\"width:{}%\"></i>\
             </span><td class=\"n\">{passed}<td class=\"n{}\">{failed}<td class=\"n dim\">{not_supported}</tr>",
            share(passed),
            share(failed),
            if failed > 0 { " bad" } else { " dim" },
        )?;
    }
    writeln!(out, "</table>")
}

fn unsupported(report: &Report, out: &mut String) -> std::fmt::Result {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for result in &report.results {
        if let Verdict::NotSupported(why) = &result.verdict {
            by_reason.entry(why).or_default().push(result.case.name);
        }
    }
    if by_reason.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Not supported</h2>")?;
    for (why, names) in by_reason {
        writeln!(
            out,
            "<details><summary>{} <span class=\"dim\">({})</span></summary><p class=\"why\"><code>{}</code></p></details>",
            escape(why),
            names.len(),
            names.join("</code> <code>"),
        )?;
    }
    Ok(())
}

fn all(report: &Report, out: &mut String) -> std::fmt::Result {
    writeln!(out, "<h2>All cases</h2>\n<details><summary>{} cases</summary><table>", report.results.len())?;
    for result in &report.results {
        let (class, word) = match result.verdict {
            Verdict::Passed => ("good", "passed"),
            Verdict::Failed(_) => ("bad", "failed"),
            Verdict::NotSupported(_) => ("dim", "not supported"),
        };
        writeln!(
            out,
            "<tr><td class=\"{class}\">{word}<td><code>{}</code><td class=\"dim\">{}<td class=\"n\">{:.2} s</tr>",
            escape(result.case.name),
            result.case.ids.join(" "),
            result.time.as_secs_f64(),
        )?;
    }
    writeln!(out, "</table></details>")
}

/// Text that stands for itself in a page.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
