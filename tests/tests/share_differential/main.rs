//! The same raw share-group requests are played to the embedded broker and to a real Kafka 4.4.0: the answers must agree
//! field by field. Reasoned exceptions: texts of errors and ids; how dead letters are cut into batches, and in which order
//! groups are described (a real broker's timing and hashes); which of several partitions comes first where a fetch's
//! limit lets it not serve all; topics that do not exist in a description of offsets (answered after a long wait).

mod admin;
mod dead_letters;
mod groups;
mod player;
mod scripts;
mod seeded;
mod transactions;

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use kafka_share_broker::{EmbeddedBroker, GroupBounds};
use kafka_share_tests::kafka::RealKafka;

/// Scripts that are played at a time: they mostly wait, and have groups and topics of their own.
const AT_A_TIME: usize = 3;

/// Plays all scripts: a transcript each.
fn play(address: SocketAddr) -> Vec<Vec<String>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![Vec::new(); scripts::ALL.len()]));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some((at, (_, script))) = take(&next) {
                    let transcript = script(address);
                    done.lock().expect("no script panicked")[at] = transcript;
                }
            });
        }
    });
    done.into_inner().expect("no script panicked")
}

fn take(next: &AtomicUsize) -> Option<(usize, (&'static str, scripts::Script))> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    scripts::ALL.get(at).map(|script| (at, *script))
}

/// Where two transcripts of a script part, with the lines before.
fn difference(name: &str, ours: &[String], theirs: &[String]) -> Option<String> {
    let end = ours.len().max(theirs.len());
    let first = (0..end).find(|at| ours.get(*at) != theirs.get(*at))?;
    let mut text = format!("== {name}\n");
    for at in first.saturating_sub(6)..(first + 4).min(end) {
        let (ours, theirs) = (ours.get(at), theirs.get(at));
        let line = |line: Option<&String>| line.map_or("(the end)", String::as_str).to_owned();
        if ours == theirs {
            text.push_str(&format!("      {}\n", line(ours)));
        } else {
            text.push_str(&format!("ours  {}\nkafka {}\n", line(ours), line(theirs)));
        }
    }
    Some(text)
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

/// What `kafka-up` starts a real broker with.
fn bounds() -> GroupBounds {
    GroupBounds {
        record_lock_ms: (1_000, 60_000),
        session_timeout_ms: (1_000, 60_000),
        heartbeat_ms: (100, 15_000),
        ..GroupBounds::default()
    }
}

/// Plays once on fresh brokers; answers what differs.
fn round_differs() -> Option<String> {
    let kafka = RealKafka::start("the_embedded_broker_answers_as_kafka_does", "4.4.0")?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let broker = runtime
        .block_on(EmbeddedBroker::builder().transactional_acks(false).group_bounds(bounds()).start())
        .expect("a broker");
    let ours = broker.bootstrap_servers().parse().expect("an address");
    let (ours, theirs) = std::thread::scope(|scope| {
        let ours = scope.spawn(move || play(ours));
        let theirs = play(kafka.address());
        (ours.join().expect("the embedded broker answers"), theirs)
    });
    let names = scripts::ALL.iter().map(|(name, _)| *name);
    let differences: Vec<String> = names
        .zip(ours.iter().zip(&theirs))
        .filter_map(|(name, (ours, theirs))| difference(name, ours, theirs))
        .collect();
    if differences.is_empty() { None } else { Some(differences.join("\n")) }
}
