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

type Named = (&'static str, scripts::Script);

/// Scripts that are played at a time: they mostly wait, and have groups and topics of their own.
const AT_A_TIME: usize = 3;

/// Plays scripts: a transcript each.
fn play(address: SocketAddr, scripts: &[Named]) -> Vec<Vec<String>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![Vec::new(); scripts.len()]));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(((_, script), at)) = next_of(scripts, &next) {
                    let transcript = script(address);
                    done.lock().expect("no script panicked")[at] = transcript;
                }
            });
        }
    });
    done.into_inner().expect("no script panicked")
}

fn next_of(scripts: &[Named], next: &AtomicUsize) -> Option<(Named, usize)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    scripts.get(at).map(|script| (*script, at))
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

/// Rounds, each on fresh brokers, of the scripts that have not agreed yet. A rule that differs differs in every round; a real
/// broker that settles a release a moment later than its client's next fetch, on a busy machine, does not.
const ROUNDS: usize = 4;

#[test]
fn the_embedded_broker_answers_as_kafka_does() {
    let (mut left, mut differences) = (scripts::ALL.to_vec(), String::new());
    for round in 1..=ROUNDS {
        let different = round_of(&left);
        if different.is_empty() {
            return;
        }
        for (_, found) in &different {
            differences.push_str(&format!("round {round}:\n{found}\n"));
        }
        left = different.into_iter().map(|(script, _)| script).collect();
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

/// Plays scripts once on fresh brokers; answers those that differ, and where.
fn round_of(scripts: &[Named]) -> Vec<(Named, String)> {
    let Some(kafka) = RealKafka::start("the_embedded_broker_answers_as_kafka_does", "4.4.0") else {
        return Vec::new();
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let broker = runtime
        .block_on(EmbeddedBroker::builder().transactional_acks(false).group_bounds(bounds()).start())
        .expect("a broker");
    let ours = broker.bootstrap_servers().parse().expect("an address");
    let (ours, theirs) = std::thread::scope(|scope| {
        let ours = scope.spawn(move || play(ours, scripts));
        let theirs = play(kafka.address(), scripts);
        (ours.join().expect("the embedded broker answers"), theirs)
    });
    scripts
        .iter()
        .zip(ours.iter().zip(&theirs))
        .filter_map(|(script, (ours, theirs))| Some((*script, difference(script.0, ours, theirs)?)))
        .collect()
}
