//! Tests of fetch sessions: what a full cache does, what is told, and what a session may take. How requests and answers go
//! is compared with a real Kafka by the differential test of the `tests` crate.

use super::*;
use crate::rng::Rng;
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use kafka_share_wire::{Str, Uuid};
use std::time::Duration;

const NODE: i32 = 1;
const TOPIC: Uuid = Uuid([3; 16]);

struct Rig {
    sessions: FetchSessions,
    rng: Rng,
    now: Duration,
}

impl Rig {
    fn new(slots: usize, session_bytes: usize, total_bytes: usize) -> Self {
        let limits = Limits { slots, eviction: Duration::from_secs(120), session_bytes, total_bytes };
        Rig { sessions: FetchSessions::new(limits), rng: Rng::new(1), now: Duration::from_secs(1000) }
    }

    fn request(session_id: i32, session_epoch: i32, partitions: std::ops::Range<i32>) -> FetchRequest {
        let partition = |partition| FetchPartition { partition, ..Default::default() };
        let topic =
            FetchTopic { topic_id: TOPIC, partitions: partitions.map(partition).collect(), ..Default::default() };
        FetchRequest { session_id, session_epoch, topics: vec![topic], ..Default::default() }
    }

    fn enter(&mut self, request: &FetchRequest) -> Result<(Context, Vec<Followed>), ErrorCode> {
        self.sessions.enter(self.now, NODE, request, true)
    }

    /// Opens a session of so many partitions; 0 if there is no room.
    fn open(&mut self, partitions: i32) -> i32 {
        let (context, followed) = self.enter(&Self::request(0, 0, 0..partitions)).unwrap();
        assert_eq!(context, Context::Full);
        let cached = followed.into_iter().map(|followed| CachedPartition::new(followed, None)).collect();
        self.sessions.open(self.now, NODE, true, cached, &mut self.rng)
    }

    fn use_it(&mut self, session: i32, epoch: i32) -> bool {
        self.enter(&Self::request(session, epoch, 0..0)).is_ok()
    }
}

fn seen(high_watermark: i64, has_records: bool) -> Seen {
    Seen { high_watermark, log_start_offset: 0, has_records, failed: false, diverges: false }
}

#[test]
fn a_full_cache_gives_up_what_is_long_unused_or_small_and_old() {
    let mut rig = Rig::new(2, usize::MAX, usize::MAX);
    let (small, large) = (rig.open(1), rig.open(5));
    assert!(small != 0 && large != 0 && small != large);
    assert_eq!(rig.open(9), 0, "both are new");
    rig.now += Duration::from_secs(100);
    assert!(rig.use_it(small, 1) && rig.use_it(large, 1));
    rig.now += Duration::from_secs(100);
    assert_eq!(rig.open(0), 0, "smaller than any that had its time");
    let third = rig.open(3);
    assert!(third != 0, "takes the place of the smallest that had its time");
    assert!(!rig.use_it(small, 2) && rig.use_it(large, 2));
    rig.now += Duration::from_secs(121);
    assert!(rig.open(1) != 0, "takes the place of one that is long unused");
    assert!(rig.use_it(large, 3) ^ rig.use_it(third, 1));
}

#[test]
fn sessions_are_bounded_in_bytes() {
    let mut rig = Rig::new(100, 10_000, 15_000);
    assert_eq!(rig.open(1_000), 0, "the reader goes without");
    let session = rig.open(1);
    let grown = rig.enter(&Rig::request(session, 1, 0..1_000));
    assert_eq!(grown.unwrap_err(), ErrorCode::FETCH_SESSION_ID_NOT_FOUND, "it comes back with a full fetch");
    assert!(!rig.use_it(session, 2));
    let opened = (0..100).filter(|_| rig.open(20) != 0).count();
    assert!((1..10).contains(&opened), "{opened}");
}

#[test]
fn a_session_tells_what_is_new_and_reads_in_turns() {
    let mut rig = Rig::new(10, usize::MAX, usize::MAX);
    let session = rig.open(3);
    let (context, followed) = rig.enter(&Rig::request(session, 1, 0..0)).unwrap();
    assert_eq!(context, Context::Incremental { session, epoch: 2 });
    let key = |index: usize| followed[index].key.clone();
    let all = [(key(0), seen(5, true)), (key(1), seen(0, false)), (key(2), seen(0, false))];
    let told = rig.sessions.tell(NODE, (session, 2), &all);
    assert_eq!(told, Ok(vec![true, true, true]), "new watermarks");
    let again = rig.sessions.tell(NODE, (session, 2), &all);
    assert_eq!(again, Ok(vec![true, false, false]), "records only");
    assert_eq!(rig.sessions.tell(NODE, (session, 1), &all), Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH));
    let failed = Seen { failed: true, high_watermark: -1, ..seen(-1, false) };
    for _ in 0..2 {
        assert_eq!(rig.sessions.tell(NODE, (session, 2), &[(key(1), failed)]), Ok(vec![true]));
    }
    assert_eq!(rig.sessions.tell(NODE, (session, 2), &[(key(1), seen(0, false))]), Ok(vec![true]), "healed");
    let (_, followed) = rig.enter(&Rig::request(session, 2, 0..0)).unwrap();
    let order: Vec<i32> = followed.iter().map(|followed| followed.key.partition).collect();
    assert_eq!(order, [1, 2, 0], "what gave records comes last");
}

#[test]
fn epochs_wrap_and_forgotten_partitions_go() {
    let mut rig = Rig::new(10, usize::MAX, usize::MAX);
    let session = rig.open(2);
    rig.sessions.set_epoch(NODE, session, i32::MAX);
    assert!(rig.use_it(session, i32::MAX) && rig.use_it(session, 1));
    let mut request = Rig::request(session, 2, 0..0);
    let topic = Str::default();
    request.forgotten_topics_data =
        vec![ForgottenTopic { topic, topic_id: TOPIC, partitions: vec![0, 9], ..Default::default() }];
    assert_eq!(rig.enter(&request).unwrap().1.len(), 1);
    assert_eq!(rig.sessions.iter().collect::<Vec<_>>(), [(NODE, session, 3, 1)]);
    rig.sessions.forget_node(NODE);
    assert!(!rig.use_it(session, 3));
}
