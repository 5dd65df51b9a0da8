//! Kafka's own command line tools as judges: on the embedded broker they must print what they print on a real Kafka.

mod script;

use kafka_share_broker::EmbeddedBroker;
use kafka_share_tests::java::available;
use kafka_share_tests::kafka::RealKafka;
use tokio::runtime::Runtime;

/// How often all may be played: what differs, or fails, as the broker does not do as it must does so each time.
const ROUNDS: usize = 3;

/// One test, so that both brokers run side by side and only once.
#[test]
fn kafka_tools_print_the_same_on_both_brokers() {
    let test = "kafka_tools_print_the_same_on_both_brokers";
    if !available(test) {
        return;
    }
    let mut all = String::new();
    for number in 1..=ROUNDS {
        match round(test) {
            Ok(()) => return,
            Err(report) => all.push_str(&format!("round {number}:\n{report}\n")),
        }
    }
    panic!("the brokers are described otherwise:\n{all}");
}

/// Plays all on fresh brokers.
fn round(test: &str) -> Result<(), String> {
    // Started before anything can fail: a test that ends while a broker starts would leave it behind.
    let kafka = RealKafka::start(test, "4.4.0").expect("Java is there");
    let real = std::thread::spawn(move || script::play(&kafka.bootstrap()));
    let runtime = Runtime::new().expect("a runtime");
    let builder = EmbeddedBroker::builder().transactional_acks(false).configure(|config| {
        // As `kafka-up` sets them.
        config.groups.record_lock_ms.0 = 1_000;
        config.groups.session_timeout_ms.0 = 1_000;
        config.groups.heartbeat_ms.0 = 100;
    });
    let broker = runtime.block_on(builder.start()).expect("a broker");
    let servers = broker.bootstrap_servers();
    let embedded = std::thread::spawn(move || script::play(&servers));
    let (embedded, real) = (embedded.join(), real.join());
    let embedded = embedded.map_err(|_| "the script fails on the embedded broker".to_owned())?;
    let real = real.map_err(|_| "the script fails on a real Kafka".to_owned())?;
    let differ = embedded.iter().zip(&real).filter(|(ours, theirs)| ours != theirs);
    let report: String = differ
        .map(|((step, ours), (_, theirs))| format!("{step}\nembedded:\n{}\nreal:\n{}\n", ours.text, theirs.text))
        .collect();
    if report.is_empty() && embedded.len() == real.len() { Ok(()) } else { Err(report) }
}
