//! The conformance suite against real brokers and the embedded one.

use kafka_share::ClientConfig;
use kafka_share_broker::EmbeddedBroker;
use kafka_share_conformance::{Report, Runner, Verdict, cases};
use kafka_share_tests::kafka::RealKafka;

async fn judge(servers: &str) -> Report {
    let runner = Runner::new(ClientConfig::new(servers)).cluster_name(servers);
    runner.run(&cases::all(), |_| {}).await.expect("the cluster can be reached")
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
    let report = judge(&kafka.bootstrap()).await;
    assert_eq!(report.failed(), 0, "\n{}", report.text());
    assert_eq!(not_supported(&report), drafts(), "\n{}", report.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_broker_passes_every_case() {
    let broker = EmbeddedBroker::builder()
        .configure(|config| config.groups.record_lock_ms.0 = 1000)
        .start()
        .await
        .expect("the embedded broker starts");
    let report = judge(&broker.bootstrap_servers()).await;
    let failed = report.results.iter().filter(|r| matches!(r.verdict, Verdict::Failed(_)));
    let unexpected: Vec<&str> = failed.map(|r| r.case.name).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}\n{}", report.text());
    assert_eq!(report.not_supported(), 0, "\n{}", report.text());
}
