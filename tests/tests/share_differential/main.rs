//! The same raw share-group requests are played to the embedded broker and to a real Kafka 4.4.0: the answers must agree
//! field by field, apart from texts of errors, ids, and what the scripts leave out with a reason.

mod admin;
mod player;
mod scripts;

use std::net::SocketAddr;

use kafka_share_broker::EmbeddedBroker;
use kafka_share_tests::kafka::RealKafka;

/// Plays all scripts.
fn play(address: SocketAddr) -> Vec<String> {
    let mut all = Vec::new();
    for (name, script) in scripts::ALL {
        all.push(format!("== {name}"));
        all.extend(script(address));
    }
    all
}

/// Rounds, each on fresh brokers. A rule that differs differs in every round; a real broker that settles a release a
/// moment later than its client's next fetch, on a busy machine, does not.
const ROUNDS: usize = 3;

#[test]
fn the_embedded_broker_answers_as_kafka_does() {
    let mut differences = String::new();
    for round in 1..=ROUNDS {
        match round_differs() {
            None => return,
            Some(found) => differences.push_str(&format!("round {round}:\n{found}\n")),
        }
    }
    panic!("{differences}");
}

/// Plays once on fresh brokers; answers what differs.
fn round_differs() -> Option<String> {
    let kafka = RealKafka::start("the_embedded_broker_answers_as_kafka_does", "4.4.0")?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let broker = runtime.block_on(EmbeddedBroker::builder().transactional_acks(false).start()).expect("a broker");
    let ours = broker.bootstrap_servers().parse().expect("an address");
    let (ours, theirs) = std::thread::scope(|scope| {
        let ours = scope.spawn(move || play(ours));
        let theirs = play(kafka.address());
        (ours.join().expect("the embedded broker answers"), theirs)
    });
    let differ =
        |(ours, theirs): (&String, &String)| (ours != theirs).then(|| format!("ours  {ours}\nkafka {theirs}\n"));
    let differences: Vec<String> = ours.iter().zip(&theirs).filter_map(differ).collect();
    if differences.is_empty() && ours.len() == theirs.len() {
        return None;
    }
    Some(format!(
        "{}\n{} answers of ours, {} of Kafka's:\n{}",
        differences.join("\n"),
        ours.len(),
        theirs.len(),
        theirs.join("\n")
    ))
}
