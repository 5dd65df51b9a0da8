//! `kshare conformance --client`: runs any share consumer through the scenarios.

use super::{ConformanceArgs, Form};
use crate::exit::Failure;
use kafka_share_judge::{Place, ScenarioResult, judge, scenarios};
use serde_json::json;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

/// Time for a client to be done with a scenario.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(command: &str, args: &ConformanceArgs) -> Result<(), Failure> {
    if matches!(args.report, Form::Junit | Form::Html) {
        return Err(Failure::usage("--client reports as text or json"));
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    let Some((program, rest)) = words.split_first() else {
        return Err(Failure::usage("--client: there is no program in it"));
    };
    for place in ["{bootstrap}", "{topic}", "{group}"] {
        if !command.contains(place) {
            return Err(Failure::usage(format_args!(
                "--client: {place} is not in it, so that the client would not know"
            )));
        }
    }
    let (all, mut results) = (scenarios(), Vec::new());
    for scenario in &all {
        eprintln!("{} of {}: {}, {}", results.len() + 1, all.len(), scenario.name, scenario.about);
        let result = judge(scenario, PATIENCE, |place, stop| consume(program, rest, place, stop)).await?;
        results.push(result);
    }
    let text = if args.report == Form::Json { as_json(&results) } else { as_text(&results) };
    super::put(args, text)?;
    match results.iter().filter(|result| !result.passed()).count() {
        0 => Ok(()),
        failed => Err(Failure::new(format_args!("{failed} of {} scenarios failed", results.len()))),
    }
}

/// Runs the program until it is told to stop.
async fn consume(program: &str, rest: &[&str], place: Place, stop: oneshot::Receiver<()>) -> Result<(), String> {
    let filled = |word: &&str| {
        word.replace("{bootstrap}", &place.bootstrap).replace("{topic}", place.topic).replace("{group}", place.group)
    };
    let mut command = Command::new(program);
    command.args(rest.iter().map(filled)).stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| format!("{program} does not start: {error}"))?;
    tokio::select! {
        ended = child.wait() => return Err(format!("it ended before it was told to: {}", words_of(ended))),
        _ = stop => {}
    }
    terminate(&mut child);
    let ended = child.wait().await;
    match &ended {
        Ok(status) if status.success() => Ok(()),
        _ => Err(words_of(ended)),
    }
}

fn words_of(ended: std::io::Result<std::process::ExitStatus>) -> String {
    ended.map_or_else(|error| error.to_string(), |status| status.to_string())
}

fn terminate(child: &mut Child) {
    drop(child.stdin.take());
    #[cfg(unix)]
    if let Some(pid) = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)) {
        // It may have ended by itself meanwhile.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

fn as_text(results: &[ScenarioResult]) -> String {
    let mut text = String::new();
    for result in results {
        let verdict = if result.passed() { "passed" } else { "FAILED" };
        text += &format!("{verdict}  {:<24} {:>6.1} s\n", result.name, result.time.as_secs_f64());
        for (id, how) in &result.broken {
            text += &format!("        {id}: {how}\n");
        }
        for why in reasons(result) {
            text += &format!("        {why}\n");
        }
    }
    let passed = results.iter().filter(|result| result.passed()).count();
    text + &format!("{passed} passed, {} failed\n", results.len() - passed)
}

/// Why it did not pass, apart from rules.
fn reasons(result: &ScenarioResult) -> Vec<String> {
    let mut reasons = Vec::new();
    if !result.happened {
        reasons.push("it never sent the request that was to go wrong".to_owned());
    }
    if result.left > 0 {
        reasons.push(format!("{} records were not accepted within {} s", result.left, PATIENCE.as_secs()));
    }
    reasons.extend(result.ended.clone());
    reasons
}

fn as_json(results: &[ScenarioResult]) -> String {
    let one = |result: &ScenarioResult| {
        let broken = result.broken.iter().map(|(id, how)| json!({ "id": id, "how": how }));
        json!({
            "name": result.name,
            "passed": result.passed(),
            "broken": broken.collect::<Vec<_>>(),
            "reasons": reasons(result),
            "requests": result.looked_at,
            "seconds": result.time.as_secs_f64(),
        })
    };
    let all = json!({ "scenarios": results.iter().map(one).collect::<Vec<_>>() });
    format!("{all}\n")
}
