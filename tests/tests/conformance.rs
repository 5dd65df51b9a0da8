//! The conformance suite against real brokers and the embedded one.

use kafka_share::ClientConfig;
use kafka_share_broker::EmbeddedBroker;
use kafka_share_conformance::{Case, Report, Runner, Verdict, cases};
use kafka_share_tests::kafka::RealKafka;

async fn judge(servers: &str, cases: &[Case]) -> Report {
    let runner = Runner::new(ClientConfig::new(servers)).cluster_name(servers);
    runner.run(cases, |_| {}).await.expect("the cluster can be reached")
}

fn failed(report: &Report) -> Vec<Case> {
    let hits = report.results.iter().filter(|r| matches!(r.verdict, Verdict::Failed(_)));
    hits.map(|r| r.case).collect()
}

/// Names of the cases that the cluster does not support.
fn not_supported(report: &Report) -> Vec<&'static str> {
    let hits = report.results.iter().filter(|r| matches!(r.verdict, Verdict::NotSupported(_)));
    hits.map(|r| r.case.name).collect()
}

/// Names of the cases that need what no released broker has.
fn drafts() -> Vec<&'static str> {
    cases::all().iter().filter(|c| c.kip == 1289).map(|c| c.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn kafka_4_4_passes_every_case() {
    let Some(kafka) = RealKafka::start("kafka_4_4_passes_every_case", "4.4.0") else { return };
    let report = judge(&kafka.bootstrap(), &cases::all()).await;
    assert_eq!(not_supported(&report), drafts(), "\n{}", report.text());
    // Cases have short locks and strict counts. A broker that breaks a rule does so each time; one whose machine is busy
    // for a moment does not.
    let (mut left, mut text) = (failed(&report), report.text());
    for _ in 0..2 {
        if left.is_empty() {
            break;
        }
        let again = judge(&kafka.bootstrap(), &left).await;
        (left, text) = (failed(&again), text + &again.text());
    }
    assert!(left.is_empty(), "\n{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_broker_passes_every_case() {
    let broker = EmbeddedBroker::builder()
        .configure(|config| {
            config.groups.record_lock_ms.0 = 1000;
            config.groups.session_timeout_ms.0 = 1000;
            config.groups.heartbeat_ms.0 = 100;
        })
        .start()
        .await
        .expect("the embedded broker starts");
    let report = judge(&broker.bootstrap_servers(), &cases::all()).await;
    let unexpected: Vec<&str> = failed(&report).iter().map(|case| case.name).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}\n{}", report.text());
    assert_eq!(report.not_supported(), 0, "\n{}", report.text());
}
