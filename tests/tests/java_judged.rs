//! The official share consumer, judged as any other client: what it sends in each scenario, by the rules that bind clients.

use kafka_share_judge::{Place, Scenario, ScenarioResult, judge, scenarios};
use kafka_share_tests::java::{JavaProject, available};
use kafka_share_tests::kafka;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::sync::oneshot;

const PATIENCE: Duration = Duration::from_secs(60);
/// Where it is known to hang.
const LITTLE: Duration = Duration::from_secs(5);
/// What it does not survive; `FINDINGS.md` of the conformance suite has it.
const FOUND: &str = "fetch_of_another";

/// Runs the program until it is told to stop, which is the end of its standard input.
async fn run(mut command: Command, stop: oneshot::Receiver<()>) -> Result<(), String> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn().map_err(|e| e.to_string())?;
    let input = child.stdin.take();
    let end = child.wait_with_output();
    let told = async {
        let _ = stop.await;
        drop(input);
        std::future::pending().await
    };
    let output = tokio::select! {
        output = end => output.map_err(|e| e.to_string())?,
        () = told => unreachable!("it waits for ever"),
    };
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

fn judged(test: &str, mode: &str, which: impl Fn(&str) -> bool) -> Vec<ScenarioResult> {
    if !available(test) {
        return Vec::new();
    }
    let jars = kafka::jars("4.4.0").unwrap_or_else(|e| panic!("the jars of Kafka 4.4.0: {e}"));
    let project = JavaProject::build("share");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let client = |place: Place, stop| {
        let mut command = project.command_with(&jars, "share.Judged");
        command.args([place.bootstrap.as_str(), place.topic, place.group, mode]);
        run(command, stop)
    };
    let patience = |name: &str| if name == FOUND { LITTLE } else { PATIENCE };
    let play = |scenario: &Scenario| {
        let result = runtime.block_on(judge(scenario, patience(scenario.name), client)).expect("a judge");
        println!("{mode} {}: {result:?}", scenario.name);
        result
    };
    let chosen = scenarios().into_iter().filter(|scenario| which(scenario.name));
    // What its many threads do in another order on a busy machine is played again: a rule that it breaks it breaks each time.
    let again = |scenario: &Scenario, first: ScenarioResult| match first.passed() || scenario.name == FOUND {
        true => first,
        false => play(scenario),
    };
    chosen.map(|scenario| again(&scenario, play(&scenario))).collect()
}

#[test]
fn the_java_4_4_consumer_with_explicit_acknowledgements() {
    for result in judged("the_java_4_4_consumer_with_explicit_acknowledgements", "explicit", |_| true) {
        match result.name {
            FOUND => {
                let hangs = result.happened && result.broken.is_empty() && result.left > 0 && result.ended.is_some();
                assert!(hangs, "it goes on now, and FINDINGS.md is out of date: {result:#?}");
            }
            _ => assert!(result.passed(), "{result:#?}"),
        }
    }
}

#[test]
fn the_java_4_4_consumer_with_implicit_acknowledgements() {
    let few = |name: &str| ["lawful", "session_not_found", "fetch_unanswered", "member_fenced"].contains(&name);
    for result in judged("the_java_4_4_consumer_with_implicit_acknowledgements", "implicit", few) {
        assert!(result.passed(), "{result:#?}");
    }
}
