//! Reports of a made-up run.

use super::*;
use crate::cases;

fn report() -> Report {
    let verdicts = [
        Verdict::Passed,
        Verdict::Failed("expected <1> & got \"2\"\u{1}".into()),
        Verdict::NotSupported("no such API".into()),
        Verdict::Passed,
    ];
    let result = |(case, verdict): (Case, Verdict)| CaseResult {
        case,
        transcript: if verdict == Verdict::Passed { Vec::new() } else { vec!["-> <x>".into()] },
        verdict,
        time: Duration::from_millis(1500),
    };
    let results = cases::all().into_iter().zip(verdicts).map(result).collect();
    Report { cluster: "h:9092".into(), results, time: Duration::from_secs(4) }
}

#[test]
fn text_ends_with_the_counts() {
    let text = report().text();
    assert_eq!(text.lines().last(), Some("2 passed, 1 failed, 1 not supported"));
    assert!(text.contains("expected <1>") && text.contains("| -> <x>"), "{text}");
}

#[test]
fn json_is_one_object() {
    let value: serde_json::Value = serde_json::from_str(&report().json()).unwrap();
    assert_eq!(value["passed"], 2);
    assert_eq!(value["cases"][1]["verdict"], "failed");
    assert_eq!(value["cases"][1]["transcript"][0], "-> <x>");
    assert_eq!(value["cases"][2]["reason"], "no such API");
}

#[test]
fn junit_escapes_what_xml_does_not_take() {
    let xml = report().junit();
    assert!(xml.contains("tests=\"4\" failures=\"1\""), "{xml}");
    assert!(xml.contains("expected &lt;1&gt; &amp; got &quot;2&quot;\u{fffd}"), "{xml}");
    assert!(!xml.contains('\u{1}'));
    assert_eq!(xml.matches("<testcase").count(), 4);
}

#[test]
fn html_is_a_page_that_shows_failures_and_reasons() {
    let page = report().html();
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"), "{page}");
    assert!(
        page.contains("<b>2</b>passed") && page.contains("<b>1</b>failed") && page.contains("<b>1</b>not supported")
    );
    assert!(
        page.contains("expected &lt;1&gt; &amp; got &quot;2&quot;\u{fffd}") && page.contains("-&gt; &lt;x&gt;"),
        "{page}"
    );
    assert!(page.contains("no such API") && !page.contains("<x>"), "{page}");
}
