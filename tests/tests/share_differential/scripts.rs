//! The scripts.

use std::net::SocketAddr;
use std::time::Duration;

use crate::player::{A, B, Fetch, Player};

/// Plays a script and gives its transcript.
pub(crate) type Script = fn(SocketAddr) -> Vec<String>;

/// All of them, by name.
pub(crate) const ALL: &[(&str, Script)] = &[
    ("sessions", sessions),
    ("acknowledgements", acknowledgements),
    ("delivery", delivery),
    ("renewals", renewals),
    ("heartbeats", heartbeats),
    ("topics", topics),
    ("modes", modes),
    ("waits", waits),
    ("resets", resets),
    ("assignments", crate::groups::assignments),
    ("admin", crate::admin::admin),
    ("dead letters", crate::dead_letters::dead_letters),
    ("settings", crate::groups::settings),
    ("groups", crate::groups::groups),
    ("committed", crate::transactions::committed),
    ("seed 1", |address| crate::seeded::seeded(address, 1, 1)),
    ("seed 2", |address| crate::seeded::seeded(address, 2, 1)),
    ("seed 10", |address| crate::seeded::seeded(address, 10, 1)),
    ("seed 15", |address| crate::seeded::seeded(address, 15, 1)),
    ("seed 101", |address| crate::seeded::seeded(address, 101, 2)),
    ("seed 102", |address| crate::seeded::seeded(address, 102, 2)),
];

const LOCK_MS: i64 = 60_000;

fn sessions(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "sessions", 2, LOCK_MS);
    p.join(&[A]);
    p.produce(0, 4);
    p.fetch(A, 1, &[(0, &[])]);
    p.fetch(A, -1, &[]);
    p.ack(A, 1, &[(0, &[(0, 0, &[1])])]);
    p.ack(A, 0, &[(0, &[(0, 0, &[1])])]);
    p.ack(A, -1, &[(0, &[(0, 0, &[1])])]);
    p.fetch("", 0, &[(0, &[])]);
    p.fetch_some("not-a-uuid", 0, &[(0, &[])]);
    p.fetch("not-a-uuid", -1, &[]);
    p.fetch(A, 0, &[]);
    p.fetch(A, 1, &[]);
    p.fetch_some(A, 0, &[(0, &[])]);
    p.say("a session opened over one that holds records");
    p.fetch(A, 0, &[(0, &[])]);
    p.ack(A, 1, &[(0, &[(0, 0, &[1])])]);
    p.fetch(A, 1, &[]);
    p.fetch(A, 3, &[]);
    p.fetch(A, 2, &[]);
    p.fetch(A, -2, &[]);
    p.fetch(A, 0, &[(0, &[(1, 1, &[1])])]);
    p.fetch(A, 3, &[(0, &[(1, 1, &[1])])]);
    p.say("forgotten after the acknowledgements");
    p.fetch_with(A, 4, &[(0, &[(2, 2, &[1])])], &Fetch { forget: vec![0], ..Fetch::default() });
    p.produce(0, 2);
    p.fetch(A, 5, &[]);
    p.fetch_with(A, 6, &[], &Fetch { forget: vec![7], ..Fetch::default() });
    p.say("closed with topics, and with acknowledgements");
    p.fetch(A, -1, &[(0, &[])]);
    p.fetch(A, 7, &[]);
    p.fetch_some(A, 0, &[(0, &[])]);
    p.fetch(A, -1, &[(0, &[(3, 3, &[1])])]);
    p.fetch_some(B, 0, &[(0, &[])]);
    p.ack(B, -1, &[(0, &[(4, 4, &[3])])]);
    p.fetch_some(A, 0, &[(0, &[])]);
    p.say("a connection that closes frees records");
    p.reconnect();
    p.fetch_some(B, 0, &[(0, &[])]);
    p.say("the session belongs to the member, whatever the connection");
    let other = p.connect();
    p.fetch_with(B, 1, &[], &Fetch { conn: other, ..Fetch::default() });
    p.lines
}

fn acknowledgements(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "acks", 2, LOCK_MS);
    p.join(&[A]);
    p.produce(0, 10);
    p.fetch_some(A, 0, &[(0, &[])]);
    p.ack(A, 1, &[(0, &[(3, 2, &[1])])]);
    p.ack(A, 2, &[(0, &[(2, 3, &[1]), (0, 1, &[1])])]);
    p.ack(A, 3, &[(0, &[(0, 2, &[1]), (2, 3, &[1])])]);
    p.ack(A, 4, &[(0, &[(0, 2, &[])])]);
    p.ack(A, 5, &[(0, &[(0, 2, &[1, 1])])]);
    p.ack(A, 6, &[(0, &[(0, 2, &[5])])]);
    p.ack(A, 7, &[(0, &[(0, 2, &[-1])])]);
    p.ack(A, 8, &[(0, &[(-1, 2, &[1])])]);
    p.ack(A, 9, &[(0, &[])]);
    p.ack(A, 10, &[(0, &[(0, 20, &[1])])]);
    p.ack(A, 11, &[(0, &[(20, 21, &[1])])]);
    p.ack(A, 12, &[(1, &[(0, 0, &[1])])]);
    p.ack(A, 13, &[(9, &[(0, 0, &[1])])]);
    p.say("all or nothing");
    p.ack(A, 14, &[(0, &[(4, 5, &[1])])]);
    p.ack(A, 15, &[(0, &[(2, 3, &[1]), (5, 6, &[1])])]);
    p.ack(A, 16, &[(0, &[(2, 3, &[1])])]);
    p.say("below the start offset");
    p.ack(A, 17, &[(0, &[(0, 1, &[1, 3])])]);
    p.ack(A, 18, &[(0, &[(0, 3, &[2])])]);
    p.ack(A, 19, &[(0, &[(0, 6, &[1])])]);
    p.ack(A, 20, &[(0, &[(0, 3, &[1]), (7, 7, &[0])])]);
    p.say("another member");
    p.fetch(B, 0, &[(0, &[])]);
    p.ack(B, 1, &[(0, &[(8, 8, &[1])])]);
    p.ack(B, 2, &[(0, &[(0, 0, &[1])])]);
    p.ack(A, 21, &[(0, &[(8, 9, &[2, 1])])]);
    p.ack(A, 22, &[(0, &[(8, 9, &[1])])]);
    p.fetch_some(B, 3, &[]);
    p.ack(B, 4, &[(0, &[(8, 8, &[1])])]);
    p.say("nothing in flight");
    p.ack(B, 5, &[(0, &[(8, 9, &[1])])]);
    p.ack(B, 6, &[(0, &[(10, 12, &[1])])]);
    p.lines
}

fn delivery(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "delivery", 1, LOCK_MS);
    p.join(&[A]);
    p.produce(0, 8);
    p.say("released as a whole until nothing is left");
    let mut epoch = 0;
    for _ in 0..24 {
        let before = p.lines.len();
        p.fetch_with(A, epoch, if epoch == 0 { &[(0, &[])] } else { &[] }, &Fetch { wait_ms: 500, ..Fetch::default() });
        epoch += 1;
        let got = ranges(&p.lines[before]);
        if got.is_empty() {
            break;
        }
        for (first, last) in got {
            p.ack(A, epoch, &[(0, &[(first, last, &[2])])]);
            epoch += 1;
        }
    }
    p.fetch(A, -1, &[]);
    p.say("sessions that close count as deliveries, up to the limit");
    p.produce(0, 2);
    for _ in 0..6 {
        p.fetch_with(A, 0, &[(0, &[])], &Fetch { wait_ms: 500, ..Fetch::default() });
        p.fetch(A, -1, &[]);
        // A real broker answers before the records are free again.
        std::thread::sleep(Duration::from_millis(200));
    }
    p.lines
}

/// Acquired ranges of a fetch's line.
fn ranges(line: &str) -> Vec<(i64, i64)> {
    let Some((_, list)) = line.rsplit_once(") [") else { return Vec::new() };
    let list = list.split(']').next().unwrap_or_default();
    let numbers: Vec<i64> = list.split(['(', ')', ',', ' ']).filter_map(|n| n.parse().ok()).collect();
    numbers.chunks(3).map(|range| (range[0], range[1])).collect()
}

fn renewals(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "renewals", 1, LOCK_MS);
    p.join(&[A]);
    p.produce(0, 4);
    p.fetch_some(A, 0, &[(0, &[])]);
    p.ack(A, 1, &[(0, &[(0, 1, &[4])])]);
    p.ack_with(A, 2, &[(0, &[(0, 1, &[4])])], true, 0);
    p.ack_with(A, 3, &[(0, &[(0, 1, &[4, 1])])], true, 0);
    let renew = Fetch { renew: true, ..Fetch::default() };
    p.fetch_with(A, 4, &[(0, &[(0, 0, &[4])])], &renew);
    let quiet = Fetch { min_bytes: 0, max_bytes: 0, max_records: 0, ..renew };
    p.fetch_with(A, 4, &[(0, &[(0, 0, &[4])])], &quiet);
    p.fetch(A, 5, &[(0, &[(0, 0, &[4])])]);
    p.fetch_with(A, 6, &[], &quiet);
    p.configure(&[("share.renew.acknowledge.enable", "false")]);
    p.ack_with(A, 7, &[(0, &[(0, 0, &[4])])], true, 0);
    p.ack_with(A, 8, &[(0, &[(0, 0, &[1])])], true, 0);
    p.lines
}

fn heartbeats(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "heartbeats", 4, LOCK_MS);
    let topic = p.topic.clone();
    let t: &[&str] = &[&topic];
    p.heartbeat(A, 1, None);
    p.heartbeat(A, -1, None);
    p.heartbeat("", 0, Some(t));
    p.heartbeat(A, 0, None);
    p.heartbeat(A, 0, Some(&[]));
    p.heartbeat(A, -2, None);
    p.say("a member that has joined stays");
    p.join(&[A]);
    let mut a = p.epoch();
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(1_100));
        a = p.heartbeat(A, a, None);
    }
    p.heartbeat(A, a + 1, None);
    p.heartbeat(A, a, Some(t));
    p.heartbeat(B, a, None);
    p.heartbeat(B, -1, None);
    p.say("another joins");
    let mut b = p.heartbeat(B, 0, Some(t));
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(1_100));
        b = p.heartbeat(B, b, None);
        a = p.heartbeat(A, a, None);
    }
    p.heartbeat(A, 0, Some(t));
    p.heartbeat(B, -1, None);
    p.heartbeat(B, b, None);
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(1_100));
        a = p.heartbeat(A, a, None);
    }
    p.say("another subscription");
    for _ in 0..2 {
        a = p.heartbeat(A, a, Some(&["no-such-topic"]));
        std::thread::sleep(Duration::from_millis(1_100));
    }
    p.heartbeat(A, -1, None);
    p.lines
}

fn topics(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "topics", 1, LOCK_MS);
    p.join(&[A]);
    p.produce(0, 3);
    let stranger = std::mem::replace(&mut p.group, "nobody-has-joined-this".into());
    p.fetch_some(A, 0, &[(0, &[])]);
    p.fetch(A, -1, &[]);
    p.group = stranger;
    p.say("unknown topics and partitions");
    let unknown = Fetch { topic: Some(kafka_share_wire::Uuid::from_halves(77, 77)), ..Fetch::default() };
    p.fetch_with(A, 0, &[(0, &[])], &unknown);
    p.fetch(A, 0, &[(5, &[])]);
    p.fetch(A, 1, &[]);
    p.fetch_some(A, 2, &[(0, &[])]);
    p.fetch(A, 3, &[(5, &[(0, 0, &[1])])]);
    p.fetch(A, 4, &[(0, &[(9, 9, &[1])])]);
    p.fetch(A, 5, &[(0, &[(0, 2, &[1])])]);
    p.lines
}

fn modes(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "modes", 1, LOCK_MS);
    p.join(&[A]);
    for _ in 0..4 {
        p.produce(0, 10);
    }
    let seven = Fetch { max_records: 7, batch_size: 7, wait_ms: 5_000, ..Fetch::default() };
    p.fetch_with(A, 0, &[(0, &[])], &seven);
    p.fetch_with(A, 1, &[], &Fetch { max_records: 15, batch_size: 10, ..Fetch::default() });
    p.fetch_with(A, 2, &[], &Fetch { strict: true, ..seven.clone() });
    p.ack(A, 3, &[(0, &[(0, 9, &[2])])]);
    p.fetch_with(A, 4, &[], &seven);
    p.ack(A, 5, &[(0, &[(3, 5, &[2])])]);
    p.fetch_with(A, 6, &[], &seven);
    p.ack(A, 7, &[(0, &[(0, 9, &[2])])]);
    p.fetch_with(A, 8, &[], &Fetch { strict: true, ..seven.clone() });
    p.fetch_with(A, 9, &[], &Fetch { max_records: 0, ..Fetch::default() });
    p.fetch_with(A, 10, &[], &Fetch { max_bytes: 1, ..Fetch::default() });
    p.fetch_with(A, 11, &[], &Fetch { version: 1, ..Fetch::default() });
    p.lines
}

/// Few bytes wait for more, up to the time that the request gives them.
fn waits(address: SocketAddr) -> Vec<String> {
    let mut p = Player::new(address, "waits", 1, LOCK_MS);
    p.join(&[A]);
    p.produce(0, 1);
    p.fetch_some(A, 0, &[(0, &[])]);
    p.produce(0, 2);
    let patient = Fetch { min_bytes: 100_000, wait_ms: 600, ..Fetch::default() };
    p.fetch_with(A, 1, &[], &patient);
    p.fetch_with(A, 2, &[], &patient);
    p.fetch_with(A, 3, &[], &Fetch { min_bytes: 0, wait_ms: 600, ..Fetch::default() });
    p.lines
}

/// Where groups begin to read.
fn resets(address: SocketAddr) -> Vec<String> {
    let mut all = Vec::new();
    for reset in ["earliest", "latest", "by_duration:PT1H", "by_duration:P1D", "by_duration:PT10S"] {
        let mut p = Player::new(address, "resets", 1, LOCK_MS);
        p.configure(&[("share.auto.offset.reset", reset)]);
        p.produce_old(0, 3, Duration::from_secs(7_200));
        p.produce_old(0, 2, Duration::from_secs(60));
        p.join(&[A]);
        // The start offset becomes known when the partition is first fetched.
        p.fetch_with(A, 0, &[(0, &[])], &Fetch { wait_ms: 1_000, ..Fetch::default() });
        p.produce(0, 1);
        p.fetch_some(A, 1, &[]);
        all.push(reset.to_owned());
        all.append(&mut p.lines);
    }
    all
}
