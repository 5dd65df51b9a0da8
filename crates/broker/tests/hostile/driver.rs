//! Drives a whole cluster by arbitrary bytes: frames, valid and not, over several connections, time that passes, clients that
//! go. Used by a property test and by a fuzz target.

use bytes::Bytes;
use kafka_share_broker::{Cluster, ClusterConfig, ConnId, NodeConfig, Now, Output};
use kafka_share_messages::ApiKey;
use std::collections::HashMap;
use std::time::Duration;

/// Connections of one run.
const CONNECTIONS: usize = 4;
/// Largest frame.
const MAX_FRAME: usize = 1 << 20;

/// Choices out of bytes; zeros after their end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> usize {
        usize::from(self.byte()) << 8 | usize::from(self.byte())
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }
}

/// A run in progress.
struct Run {
    cluster: Cluster,
    now: Now,
    conns: Vec<(ConnId, i32)>,
    /// Requests that were let in and are not answered, per open connection.
    unanswered: HashMap<ConnId, usize>,
}

/// One run. `seeds` are valid frames without their size prefix.
pub(crate) fn run(input: &[u8], seeds: &[Bytes]) {
    let mut choices = Choices(input);
    let mut run = Run::new(choices.byte());
    while !choices.0.is_empty() {
        run.step(&mut choices, seeds);
        run.take_outputs();
    }
    run.end();
}

impl Run {
    fn new(kind: u8) -> Self {
        let node = |id| NodeConfig { id, host: "localhost".into(), port: 9000 };
        let mut config = ClusterConfig { nodes: vec![node(1), node(2)], ..Default::default() };
        config.features.transaction_version = if kind & 1 == 0 { 2 } else { 1 };
        config.features.two_phase_commit = kind & 2 != 0;
        config.features.transactional_acks = kind & 4 == 0;
        config.marker_delay_ms = if kind & 8 == 0 { 0 } else { 50 };
        config.max_request_bytes = MAX_FRAME;
        config.max_log_bytes = 8 << 20;
        config.max_partitions = 500;
        config.internal_partitions = 3;
        config.max_transactional_ids = 10;
        config.fetch_session_slots = 4;
        let mut cluster = Cluster::new(config, u64::from(kind));
        cluster.create_topic("t", 2).expect("a topic");
        let now = Now { mono: Duration::ZERO, wall_ms: 1_700_000_000_000 };
        let mut run = Run { cluster, now, conns: Vec::new(), unanswered: HashMap::new() };
        for index in 0..CONNECTIONS {
            run.connect(1 + (index as i32) % 2);
        }
        run
    }

    fn connect(&mut self, node: i32) {
        let conn = self.cluster.connect(self.now, node);
        self.conns.push((conn, node));
        self.unanswered.insert(conn, 0);
        self.take_outputs();
    }

    fn step(&mut self, choices: &mut Choices<'_>, seeds: &[Bytes]) {
        let kind = choices.byte();
        let index = usize::from(choices.byte()) % self.conns.len();
        match kind % 16 {
            0 => self.pass(Duration::from_millis(choices.number() as u64)),
            1 => self.pass(Duration::from_secs(choices.number() as u64)),
            2 => {
                let (conn, node) = self.conns.remove(index);
                self.cluster.disconnect(self.now, conn);
                self.unanswered.remove(&conn);
                self.connect(node);
            }
            3 => {
                self.cluster.move_leader(
                    self.now,
                    "t",
                    i32::from(choices.byte() % 2),
                    1 + i32::from(choices.byte() % 3),
                );
            }
            4 if choices.byte() < 64 => {
                self.cluster.restart_node(self.now, 1 + i32::from(choices.byte() % 2));
            }
            5 | 6 => {
                let len = choices.number() % 200;
                self.frame(index, choices.bytes(len));
            }
            _ if !seeds.is_empty() => {
                let mut frame = seeds[choices.number() % seeds.len()].to_vec();
                mutate(choices, &mut frame);
                self.fill_in(&mut frame);
                self.frame(index, frame);
            }
            _ => {}
        }
    }

    /// Puts the topic's id where a seed has the placeholder for it.
    fn fill_in(&self, frame: &mut [u8]) {
        let Some(id) = self.cluster.topic_id("t") else { return };
        let at: Vec<usize> = (0..frame.len().saturating_sub(15)).filter(|at| frame[*at..*at + 16] == [7; 16]).collect();
        for at in at {
            frame[at..at + 16].copy_from_slice(&id.0);
        }
    }

    fn frame(&mut self, index: usize, frame: Vec<u8>) {
        let (conn, _) = self.conns[index];
        let answered = frame.len() >= 2 && i16::from_be_bytes([frame[0], frame[1]]) != ApiKey::PRODUCE.0;
        match self.cluster.handle_frame(self.now, conn, Bytes::from(frame)) {
            Ok(()) if answered => *self.unanswered.entry(conn).or_default() += 1,
            Ok(()) => {}
            Err(_) => {
                self.take_outputs();
                assert!(!self.unanswered.contains_key(&conn), "a refused frame closes its connection");
            }
        }
    }

    fn pass(&mut self, by: Duration) {
        self.now = self.now.plus(by);
        self.cluster.handle_timeout(self.now);
        // Whatever was due is done: the machine does not ask to be called for the past again and again.
        let due = self.cluster.next_deadline();
        assert!(due.is_none_or(|due| due > self.now.mono), "due at {due:?}, now {:?}", self.now.mono);
    }

    fn take_outputs(&mut self) {
        while let Some(output) = self.cluster.poll_output() {
            match output {
                Output::Send { conn, segments } => {
                    let frame = segments.concat();
                    let size = u32::from_be_bytes(frame[..4].try_into().expect("a size"));
                    assert_eq!(size as usize, frame.len() - 4);
                    let left = self.unanswered.get_mut(&conn).expect("an open connection");
                    // Answers to produce requests are not counted.
                    *left = left.saturating_sub(1);
                }
                Output::Close { conn } => {
                    self.unanswered.remove(&conn);
                }
                Output::AdvanceClock { by } => self.now = self.now.plus(by),
            }
        }
        for index in (0..self.conns.len()).rev() {
            let (conn, node) = self.conns[index];
            if !self.unanswered.contains_key(&conn) {
                self.conns.remove(index);
                self.connect(node);
            }
        }
    }

    /// Once all clients are gone nothing of their connections is left.
    fn end(&mut self) {
        for (conn, _) in std::mem::take(&mut self.conns) {
            self.cluster.disconnect(self.now, conn);
        }
        while self.cluster.poll_output().is_some() {}
        assert_eq!((self.cluster.connection_count(), self.cluster.waiting_requests()), (0, 0));
        let dump = self.cluster.dump(self.now);
        assert!(dump.share.sessions.is_empty(), "{:?}", dump.share.sessions);
        assert!(dump.transactions.len() <= 10 && dump.fetch_sessions.len() <= 8);
        assert!(!dump.to_json().is_empty());
    }
}

fn mutate(choices: &mut Choices<'_>, frame: &mut Vec<u8>) {
    for _ in 0..choices.byte() % 4 {
        if frame.is_empty() {
            return;
        }
        let at = choices.number() % frame.len();
        match choices.byte() % 5 {
            0 => frame[at] ^= 1 << (choices.byte() % 8),
            1 => frame[at] = choices.byte(),
            2 => frame.truncate(at),
            3 => {
                let extra = choices.bytes(8);
                frame.splice(at..at, extra);
            }
            _ => frame[at] = 0xff,
        }
    }
}
