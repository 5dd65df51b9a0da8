//! What is played: one function per theme.

use std::net::SocketAddr;

use kafka_share_messages::InitProducerIdRequest;

use crate::Script;
use crate::look::{Fetched, Listed};
use crate::player::{Init, Marker, Player};

/// Themes, by name.
pub(crate) const ALL: &[(&str, Script)] = &[
    ("identities", identities),
    ("commit_and_abort", commit_and_abort),
    ("ending_twice", ending_twice),
    ("wrong_callers", wrong_callers),
    ("enrolment", enrolment),
    ("sequences", sequences),
    ("fencing", fencing),
    ("resumption", resumption),
    ("contenders", contenders),
    ("timeouts", timeouts),
    ("lists", lists),
    ("interleaved", interleaved),
    ("other_versions", other_versions),
    ("markers", markers),
    ("r181 epoch end", r181_epoch_end),
    ("seed 1", |address, level| crate::random::script(address, level, 1)),
    ("seed 2", |address, level| crate::random::script(address, level, 2)),
    ("fetch sessions", crate::sessions::sessions),
    ("fetch sessions by name", crate::sessions::sessions_by_name),
];

/// The theme that every release is asked about.
pub(crate) const CONTENDERS: &[(&str, Script)] = &[("contenders", contenders)];

/// Themes of a broker that offers unstable versions.
pub(crate) const UNSTABLE: &[(&str, Script)] = &[("init_v6", init_v6)];

fn identities(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "identities", level);
    p.init(None, Init::default());
    p.init(None, Init { current: (1 << 40, -1), ..Init::default() });
    let idempotent = p.init(None, Init { version: 0, ..Init::default() });
    p.init(None, Init { current: idempotent, ..Init::default() });
    p.init(Some(""), Init::default());
    for timeout_ms in [0, -1, 900_000, 900_001, i32::MAX] {
        p.init(Some("a"), Init { timeout_ms, ..Init::default() });
    }
    let first = p.fresh("a");
    p.describe(&["a", "nobody", ""]);
    p.init(Some("a"), Init { current: first, ..Init::default() });
    p.init(Some("a"), Init { current: first, ..Init::default() });
    p.init(Some("a"), Init { current: (first.0 + 1_000_000, 0), ..Init::default() });
    p.init(Some("a"), Init { current: (first.0, 77), ..Init::default() });
    p.init(Some("a"), Init { current: (-1, 3), ..Init::default() });
    p.init(Some("new"), Init { current: (first.0, 3), ..Init::default() });
    p.init(Some("a"), Init { version: 2, ..Init::default() });
    p.init(Some("a"), Init { version: 3, current: (first.0, 0), ..Init::default() });
    p.describe(&["a", "new"]);
    let v6 = InitProducerIdRequest { transaction_timeout_ms: 1000, ..Default::default() };
    p.refused(&v6, 6);
    p.lines
}

/// Begins in the way of the level.
fn begin(p: &mut Player, name: &str, producer: (i64, i16), partitions: &[i32]) {
    if p.level < 2 {
        p.add(name, producer, &[("", partitions)], 3);
    }
}

fn look(p: &mut Player, name: &str) {
    p.describe(&[name]);
    p.producers(&[0, 1, 9]);
    p.offsets(0);
    for committed in [true, false] {
        p.fetch(&Fetched { parts: &[(0, 0), (1, 0)], committed, ..Fetched::default() });
    }
}

fn commit_and_abort(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "commit", level);
    let mut producer = p.fresh("a");
    for (round, commit) in [true, false, true].into_iter().enumerate() {
        begin(&mut p, "a", producer, &[0, 1]);
        let sequence = if level < 2 { round as i32 * 3 } else { 0 };
        p.produce(Some("a"), producer, 0, sequence, 3);
        p.produce(Some("a"), producer, 1, sequence, 3);
        look(&mut p, "a");
        let next = p.end("a", producer, commit);
        if level >= 2 {
            producer = next;
        }
        look(&mut p, "a");
    }
    p.lines
}

fn ending_twice(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "twice", level);
    let start = p.fresh("a");
    for commit in [true, false] {
        let producer = p.end("a", start, commit);
        p.describe(&["a"]);
        let producer = if producer.0 >= 0 && level >= 2 { producer } else { start };
        begin(&mut p, "a", producer, &[0]);
        p.produce(Some("a"), producer, 0, 0, 1);
        let mut next = producer;
        for again in [commit, commit, !commit] {
            p.end("a", producer, again);
            p.describe(&["a"]);
        }
        if level >= 2 {
            next.1 += 1;
        }
        p.end("a", next, commit);
        p.end("a", next, false);
        p.describe(&["a"]);
        let again = p.fresh("a");
        p.end("a", again, false);
        p.end("a", start, commit);
    }
    p.lines
}

fn wrong_callers(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "wrong", level);
    let a = p.fresh("a");
    let b = p.fresh("b");
    let strangers = [b, (a.0, a.1 + 1), (a.0, a.1 - 1), (a.0 + 1_000_000, 0), (-1, -1)];
    for stranger in strangers {
        p.add("a", stranger, &[("", &[0])], 3);
        p.produce(Some("a"), stranger, 0, 0, 1);
        p.end("a", stranger, true);
    }
    p.produce(Some("nobody"), a, 0, 0, 1);
    p.end("nobody", a, true);
    p.end("", a, true);
    p.add("nobody", a, &[("", &[0])], 3);
    p.add("", a, &[("", &[0])], 3);
    p.produce(Some("a"), a, 2, 7, 1);
    begin(&mut p, "a", a, &[0]);
    p.produce(Some("a"), a, 0, 0, 1);
    // Inside a transaction, but not of it.
    p.produce(None, a, 0, 1, 1);
    p.produce(None, (-1, -1), 0, -1, 1);
    for stranger in strangers {
        p.produce(Some("a"), stranger, 0, 0, 1);
        p.end("a", stranger, true);
    }
    look(&mut p, "a");
    p.end("a", a, true);
    look(&mut p, "a");
    p.lines
}

fn enrolment(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "enrolment", level);
    let a = p.fresh("a");
    for version in 0..=3 {
        p.add("a", a, &[("", &[0, 99])], version);
        p.add("a", a, &[("no-such-topic", &[0]), ("", &[0])], version);
        p.add("a", (a.0, a.1 + 1), &[("", &[0])], version);
    }
    p.add("a", a, &[("__transaction_state", &[0])], 3);
    p.describe(&["a"]);
    p.add_as_broker("a", a, &[0], true);
    p.add("a", a, &[("", &[0])], 3);
    p.add_as_broker("a", a, &[0, 1], true);
    p.add_as_broker("a", (a.0, a.1 + 1), &[0], true);
    p.add_as_broker("nobody", a, &[0], true);
    p.add("a", a, &[("", &[1])], 3);
    p.add("a", a, &[("", &[1, 0])], 3);
    p.describe(&["a"]);
    p.end("a", a, false);
    look(&mut p, "a");
    p.lines
}

fn sequences(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "sequences", level);
    let idempotent = p.init(None, Init::default());
    for (sequence, records) in [(0, 3), (0, 3), (0, 2), (4, 1), (3, 1), (4, 1), (5, 1), (6, 1), (7, 1), (0, 3), (3, 1)]
    {
        p.produce(None, idempotent, 2, sequence, records);
    }
    p.produce(None, (idempotent.0, 1), 2, 5, 1);
    p.produce(None, (idempotent.0, 1), 2, 0, 1);
    p.produce(None, idempotent, 2, 8, 1);
    p.produce(None, (idempotent.0, 3), 2, i32::MAX, 1);
    p.produce(None, idempotent, 1, 17, 1);
    p.producers(&[1, 2]);
    let edge = p.init(None, Init::default());
    p.produce(None, edge, 0, i32::MAX - 1, 3);
    p.produce(None, edge, 0, 1, 1);
    p.producers(&[0]);
    let a = p.fresh("a");
    begin(&mut p, "a", a, &[0]);
    p.produce(Some("a"), a, 0, 5, 1);
    p.produce(Some("a"), a, 0, 0, 2);
    p.produce(Some("a"), a, 0, 0, 2);
    p.produce(Some("a"), a, 0, 3, 1);
    p.produce(Some("a"), a, 0, 2, 1);
    let end = p.end("a", a, true);
    let next = if level >= 2 { end } else { a };
    begin(&mut p, "a", next, &[0]);
    p.produce(Some("a"), next, 0, 2, 1);
    p.produce(Some("a"), next, 0, 3, 1);
    p.produce(Some("a"), next, 0, 0, 1);
    p.end("a", next, true);
    look(&mut p, "a");
    p.lines
}

fn fencing(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "fencing", level);
    let old = p.fresh("a");
    begin(&mut p, "a", old, &[0]);
    p.produce(Some("a"), old, 0, 0, 2);
    let new = p.fresh("a");
    look(&mut p, "a");
    p.produce(Some("a"), old, 0, 2, 1);
    p.produce(Some("a"), old, 1, 0, 1);
    p.end("a", old, true);
    p.end("a", old, false);
    p.add("a", old, &[("", &[0])], 3);
    p.add("a", old, &[("", &[0])], 1);
    p.init(Some("a"), Init { current: old, ..Init::default() });
    p.init(Some("a"), Init { current: old, version: 3, ..Init::default() });
    begin(&mut p, "a", new, &[0]);
    p.produce(Some("a"), new, 0, 0, 1);
    p.end_in("a", old, true, if level >= 2 { 5 } else { 1 });
    p.end("a", new, true);
    look(&mut p, "a");
    p.lines
}

fn resumption(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "resumption", level);
    let first = p.fresh("a");
    begin(&mut p, "a", first, &[0]);
    p.produce(Some("a"), first, 0, 0, 1);
    // An open transaction is aborted first.
    p.init(Some("a"), Init { current: first, ..Init::default() });
    p.describe(&["a"]);
    let second = p.init(Some("a"), Init { current: first, ..Init::default() });
    p.init(Some("a"), Init { current: first, ..Init::default() });
    p.describe(&["a"]);
    if second.0 >= 0 {
        begin(&mut p, "a", second, &[0]);
        p.produce(Some("a"), second, 0, 0, 1);
        p.end("a", second, false);
    }
    p.init(Some("a"), Init { current: (first.0, 0), ..Init::default() });
    let third = p.fresh("a");
    let fourth = p.init(Some("a"), Init { current: third, timeout_ms: 5_000, ..Init::default() });
    p.init(Some("a"), Init { current: fourth, timeout_ms: 0, ..Init::default() });
    p.describe(&["a"]);
    p.lines
}

/// What an owner meets whose open transaction somebody else ended with its own id and epoch, and how it goes on. `times`:
/// how often the other asks.
fn contended(p: &mut Player, name: &str, times: usize, committed: bool, owner: impl Fn(&mut Player, (i64, i16))) {
    p.say(format!("-- {name}"));
    let a = p.fresh(name);
    begin(p, name, a, &[0]);
    p.produce(Some(name), a, 0, 0, 1);
    if committed {
        p.end(name, a, true);
    }
    for _ in 0..times {
        p.init(Some(name), Init { current: a, ..Init::default() });
        p.describe(&[name]);
    }
    owner(p, a);
    p.describe(&[name]);
    let mut now = a;
    // Version 1 keeps no epoch that came before a fence; it knows its own only.
    let next = (a.0, a.1 + 1);
    for current in [a, a, next, next] {
        let got = p.init(Some(name), Init { current, ..Init::default() });
        now = if got.0 >= 0 { got } else { now };
        p.describe(&[name]);
    }
    begin(p, name, now, &[0]);
    p.produce(Some(name), now, 0, 0, 1);
    p.end(name, now, true);
    p.describe(&[name]);
}

/// A transaction is ended from outside with the identity that its batches show, as those who wait for its end do.
fn contenders(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "contenders", level);
    let produces = |name: &'static str| {
        move |p: &mut Player, a| {
            p.produce(Some(name), a, 0, 1, 1);
            p.produce(Some(name), a, 1, 0, 1);
        }
    };
    let ends = |name: &'static str, commit| {
        move |p: &mut Player, a| {
            p.end(name, a, commit);
        }
    };
    contended(&mut p, "commits", 1, false, ends("commits", true));
    contended(&mut p, "aborts", 1, false, ends("aborts", false));
    contended(&mut p, "adds", 1, false, |p, a| p.add("adds", a, &[("", &[1])], 3));
    contended(&mut p, "produces", 1, false, produces("produces"));
    contended(&mut p, "asks", 1, false, |_, _| {});
    contended(&mut p, "twice", 2, false, ends("twice", true));
    contended(&mut p, "twice-produces", 2, false, produces("twice-produces"));
    contended(&mut p, "thrice", 3, false, ends("thrice", true));
    contended(&mut p, "committed", 1, true, ends("committed", true));
    contended(&mut p, "committed-twice", 2, true, ends("committed-twice", true));
    contended(&mut p, "untouched", 0, false, |_, _| {});
    // One that comes late meets the owner's next transaction.
    p.say("-- late");
    let a = p.fresh("late");
    begin(&mut p, "late", a, &[0]);
    p.produce(Some("late"), a, 0, 0, 1);
    let ended = p.end("late", a, true);
    let next = if level >= 2 { ended } else { a };
    begin(&mut p, "late", next, &[0]);
    p.produce(Some("late"), next, 0, i32::from(level < 2), 1);
    p.init(Some("late"), Init { current: a, ..Init::default() });
    p.describe(&["late"]);
    p.end("late", next, true);
    for current in [next, (next.0, next.1 + 1)] {
        p.init(Some("late"), Init { current, ..Init::default() });
    }
    p.describe(&["late"]);
    // Who knows no identity takes over, whether or not something is open: the former owner does not come back.
    for (name, open) in [("replaced", true), ("replaced-idle", false)] {
        p.say(format!("-- {name}"));
        let a = p.fresh(name);
        begin(&mut p, name, a, &[0]);
        p.produce(Some(name), a, 0, 0, 1);
        if !open {
            p.end(name, a, true);
        }
        let new = p.fresh(name);
        p.end(name, a, true);
        p.init(Some(name), Init { current: a, ..Init::default() });
        p.init(Some(name), Init { current: (a.0, a.1 + 1), ..Init::default() });
        begin(&mut p, name, new, &[0]);
        p.produce(Some(name), new, 0, 0, 1);
        p.end(name, new, true);
        p.describe(&[name]);
    }
    p.lines
}

fn timeouts(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "timeouts", level);
    let a = p.init(Some("a"), Init { timeout_ms: 500, ..Init::default() });
    begin(&mut p, "a", a, &[0]);
    p.produce(Some("a"), a, 0, 0, 1);
    let id = p.id("a");
    p.until("the transaction timed out", |p| {
        let ids = vec![kafka_share_wire::Str::from(&id)];
        let request =
            kafka_share_messages::DescribeTransactionsRequest { transactional_ids: ids, ..Default::default() };
        p.call(&request, 0).transaction_states[0].transaction_state.as_str() == "CompleteAbort"
    });
    look(&mut p, "a");
    p.produce(Some("a"), a, 0, 1, 1);
    p.end("a", a, true);
    p.end("a", a, false);
    p.init(Some("a"), Init { current: a, ..Init::default() });
    let again = p.fresh("a");
    begin(&mut p, "a", again, &[0]);
    p.produce(Some("a"), again, 0, 0, 1);
    p.end("a", again, true);
    look(&mut p, "a");
    p.lines
}

fn lists(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "lists", level);
    let (ax, ay) = (p.fresh("ax"), p.fresh("ay"));
    let by = p.fresh("by");
    begin(&mut p, "ax", ax, &[0]);
    p.produce(Some("ax"), ax, 0, 0, 1);
    begin(&mut p, "ay", ay, &[0]);
    p.produce(Some("ay"), ay, 0, 0, 1);
    p.end("ay", ay, true);
    p.list(&Listed::default());
    for states in [&["Ongoing"][..], &["Empty", "CompleteCommit"], &["ongoing"], &["Dead", "Nonsense", ""]] {
        p.list(&Listed { states, ..Listed::default() });
    }
    p.list(&Listed { producers: &[ax.0, by.0], ..Listed::default() });
    p.list(&Listed { producers: &[ax.0], states: &["Empty"], ..Listed::default() });
    p.list(&Listed { producers: &[-1], ..Listed::default() });
    // From here on all transactions are older than the least age that can be asked for.
    std::thread::sleep(std::time::Duration::from_millis(5));
    for duration in [-5, 0, 600_000, i64::MAX] {
        p.list(&Listed { longer_than_ms: Some(duration), ..Listed::default() });
    }
    let patterns = [
        "",
        "ax-ID",
        "ax",
        "a.*",
        ".*ID",
        "a[xy]-.*",
        "^a.-.*$",
        "(ax|by)-.*",
        "b\\w-.*",
        "A.*",
        "(?i)A.*",
        "a{2}.*",
        "x.*",
        "[",
        "*",
        "(",
        "a**",
        "(?=a)",
        "\\1",
        ".*?",
        "\\Qax\\E.*",
        "a.-\\p{L}+.*",
        "\\d+",
        "[[:alpha:]]+-.*",
        "(?<n>a).*",
        "(?P<n>a).*",
    ];
    for pattern in patterns {
        p.list(&Listed { pattern: Some(pattern), ..Listed::default() });
    }
    p.lines
}

/// Two producers in one partition: the last stable offset follows the first open transaction.
fn interleaved(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "interleaved", level);
    let (mut a, mut b) = (p.fresh("a"), p.fresh("b"));
    for round in 0..3 {
        let sequence = if level < 2 { round } else { 0 };
        begin(&mut p, "a", a, &[0]);
        begin(&mut p, "b", b, &[0]);
        p.produce(Some("a"), a, 0, sequence, 1);
        p.produce(None, (-1, -1), 0, -1, 1);
        p.produce(Some("b"), b, 0, sequence, 1);
        p.offsets(0);
        let next = p.end("b", b, round == 1);
        b = if level >= 2 { next } else { b };
        p.offsets(0);
        p.fetch(&Fetched { parts: &[(0, 0)], ..Fetched::default() });
        let next = p.end("a", a, round == 2);
        a = if level >= 2 { next } else { a };
        p.offsets(0);
        for from in 0..4 {
            p.fetch(&Fetched { parts: &[(0, from * 3)], ..Fetched::default() });
        }
    }
    p.lines
}

/// The last epoch is 32,766: who commits with it, or asks for the next one, gets a new producer id.
fn r181_epoch_end(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "epochs", level);
    let first = p.fresh("a");
    let last = p.spend_epochs("a", 32_766);
    assert_eq!(last.0, first.0);
    begin(&mut p, "a", last, &[0]);
    p.produce(Some("a"), last, 0, 0, 1);
    look(&mut p, "a");
    let ended = p.end("a", last, true);
    look(&mut p, "a");
    for _ in 0..2 {
        p.end("a", last, true);
    }
    p.end("a", last, false);
    let next = if level >= 2 { ended } else { p.init(Some("a"), Init { current: last, ..Init::default() }) };
    // The answer to the first attempt may have been lost.
    p.init(Some("a"), Init { current: last, ..Init::default() });
    p.describe(&["a"]);
    p.init(Some("a"), Init { current: (last.0, 77), ..Init::default() });
    p.produce(Some("a"), last, 0, 1, 1);
    begin(&mut p, "a", next, &[0, 1]);
    p.produce(Some("a"), next, 0, 0, 1);
    let next = p.fresh("a");
    begin(&mut p, "a", next, &[0, 1]);
    p.produce(Some("a"), next, 0, 0, 1);
    p.end("a", next, true);
    p.end("a", next, true);
    look(&mut p, "a");
    p.lines
}

/// Markers as a coordinator sends them, in order and not.
fn markers(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "markers", level);
    let stranger = p.init(None, Init::default());
    for version in [1, 2] {
        let marker = Marker { version, ..Marker::default() };
        p.write_marker(stranger, &Marker { topic: Some("no-such-topic"), ..marker });
        p.write_marker(stranger, &Marker { partition: 99, ..marker });
        p.write_marker((-1, 0), &marker);
        p.write_marker((stranger.0, stranger.1 + 3), &marker);
        p.write_marker((stranger.0, stranger.1 + 3), &Marker { commit: false, ..marker });
        p.write_marker((stranger.0, stranger.1), &marker);
        let name = format!("a{version}");
        let a = p.fresh(&name);
        begin(&mut p, &name, a, &[0]);
        p.produce(Some(&name), a, 0, 0, 1);
        p.offsets(0);
        p.write_marker((a.0, a.1 - 1), &marker);
        p.write_marker(a, &Marker { level: 2, ..marker });
        p.offsets(0);
        p.write_marker(a, &Marker { coordinator_epoch: 7, ..marker });
        p.offsets(0);
        p.write_marker(a, &Marker { coordinator_epoch: 6, ..marker });
        p.write_marker(a, &Marker { coordinator_epoch: 7, commit: false, ..marker });
        p.write_marker((a.0, a.1 + 1), &Marker { coordinator_epoch: 8, level: 2, ..marker });
        p.write_marker((a.0, a.1 + 1), &Marker { coordinator_epoch: 8, level: 2, ..marker });
        p.producers(&[0]);
        p.fetch(&Fetched { parts: &[(0, 0)], ..Fetched::default() });
    }
    p.lines
}

/// Requests in versions of the other transaction version, and older ones.
fn other_versions(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "versions", level);
    for produce in [3, 7, 9, 10, 11, 12] {
        for end in [0, 1, 2, 4, 5] {
            let name = format!("p{produce}e{end}");
            let producer = p.fresh(&name);
            p.produce_in(Some(&name), producer, 0, 0, 1, produce);
            if produce < 12 {
                p.add(&name, producer, &[("", &[0])], 3);
                p.produce_in(Some(&name), producer, 0, 0, 1, produce);
            }
            p.produce_in(Some(&name), (producer.0, producer.1 + 4), 1, 0, 1, produce);
            p.end_in(&name, (producer.0, producer.1 + 4), true, end);
            p.end_in(&name, producer, true, end);
            p.end_in(&name, producer, true, end);
            p.produce_in(Some(&name), producer, 0, 1, 1, produce);
            p.describe(&[&name]);
        }
    }
    p.lines
}

fn init_v6(address: SocketAddr, level: i16) -> Vec<String> {
    let mut p = Player::new(address, "v6", level);
    let v6 = Init { version: 6, ..Init::default() };
    p.init(None, v6);
    p.init(None, Init { two_phase: true, keep: true, ..v6 });
    p.init(Some("a"), v6);
    for timeout_ms in [0, 60_000] {
        for (two_phase, keep) in [(true, false), (false, true), (true, true)] {
            p.init(Some("a"), Init { two_phase, keep, timeout_ms, ..v6 });
            p.init(Some(""), Init { two_phase, keep, timeout_ms, ..v6 });
            p.init(Some("a"), Init { two_phase, keep, timeout_ms, current: (1 << 40, -1), ..v6 });
        }
    }
    p.describe(&["a"]);
    p.lines
}
