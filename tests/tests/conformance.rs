//! The conformance suite against real brokers and the embedded one.

use kafka_share::ClientConfig;
use kafka_share_broker::EmbeddedBroker;
use kafka_share_conformance::{Case, Report, Runner, Verdict, cases};
use kafka_share_tests::kafka::RealKafka;

/// Cases have short locks: one broker at a time, so that they need not share the machine.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

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

/// What released brokers fail; `FINDINGS.md` says what was seen.
const FINDINGS: &[(&str, &[&str])] = &[
    (
        "4.1.1",
        &[
            "acknowledge_needs_a_group_id",
            "acknowledge_needs_a_member_id",
            "altering_an_unknown_partition_is_told",
            "altering_makes_the_group",
            "fetch_needs_a_group_id",
            "fetch_needs_a_member_id",
            "member_may_join_again",
            "offsets_of_a_group_with_members_cannot_be_set",
            "offsets_of_an_empty_group_can_be_set",
            "set_offset_forgets_states",
            "unknown_topic_id_is_an_error_of_its_partition",
        ],
    ),
    (
        "4.2.0",
        &[
            "acknowledge_needs_a_group_id",
            "acknowledge_needs_a_member_id",
            "fetch_needs_a_group_id",
            "fetch_needs_a_member_id",
            "unknown_topic_id_is_an_error_of_its_partition",
        ],
    ),
    ("4.3.1", &["unknown_topic_id_is_an_error_of_its_partition"]),
    ("4.4.0", &[]),
];

/// Judges a released broker: it fails what is known, and nothing else.
async fn judge_release(test: &str, version: &str) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let Some(kafka) = RealKafka::start(test, version) else { return };
    let known = FINDINGS.iter().find(|(of, _)| *of == version).map_or(&[][..], |(_, names)| names);
    let report = judge(&kafka.bootstrap(), &cases::all()).await;
    if version == "4.4.0" {
        assert_eq!(not_supported(&report), drafts(), "\n{}", report.text());
    }
    // Cases have short locks and strict counts. A broker that breaks a rule does so each time; one whose machine is busy
    // for a moment does not.
    let unknown = |report: &Report| -> Vec<Case> {
        failed(report).into_iter().filter(|case| !known.contains(&case.name)).collect()
    };
    let (mut left, mut text) = (unknown(&report), report.text());
    for _ in 0..2 {
        if left.is_empty() {
            break;
        }
        let again = judge(&kafka.bootstrap(), &left).await;
        (left, text) = (failed(&again), text + &again.text());
    }
    assert!(left.is_empty(), "\n{text}");
    let now: Vec<&str> = failed(&report).iter().map(|case| case.name).collect();
    let mended: Vec<&&str> = known.iter().filter(|name| !now.contains(name)).collect();
    assert!(mended.is_empty(), "Kafka {version} passes {mended:?}, which FINDINGS has as failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn kafka_4_1_fails_what_is_known() {
    judge_release("kafka_4_1_fails_what_is_known", "4.1.1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kafka_4_2_fails_what_is_known() {
    judge_release("kafka_4_2_fails_what_is_known", "4.2.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kafka_4_3_fails_what_is_known() {
    judge_release("kafka_4_3_fails_what_is_known", "4.3.1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kafka_4_4_passes_every_case() {
    judge_release("kafka_4_4_passes_every_case", "4.4.0").await;
}

#[test]
fn findings_and_matrix_are_up_to_date() {
    let file = |name: &str| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/conformance").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let (findings, matrix) = (file("FINDINGS.md"), file("MATRIX.md"));
    let all = cases::all();
    for (version, names) in FINDINGS {
        for name in *names {
            assert!(all.iter().any(|c| c.name == *name), "{name} is no case");
            let row = |line: &&str| line.contains(version) && line.contains(&format!("`{name}`"));
            assert!(findings.lines().any(|l| row(&l)), "FINDINGS.md has no row of {version} and {name}");
        }
    }
    let rows: Vec<&str> =
        matrix.lines().filter_map(|l| l.strip_prefix("| `")?.split_once('`').map(|(n, _)| n)).collect();
    let names: Vec<&str> = all.iter().map(|c| c.name).collect();
    assert_eq!(rows, names, "MATRIX.md is out of date: make it anew with the example `matrix`");
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_broker_passes_every_case() {
    let _turn = ONE_AT_A_TIME.lock().await;
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
