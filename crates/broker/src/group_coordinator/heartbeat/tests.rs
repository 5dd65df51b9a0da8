//! Tests of heartbeats: epochs, fencing, sizes, timeouts, changing topics.

use super::*;

struct World {
    groups: GroupCoordinator,
    now: Duration,
    partitions: i32,
}

impl World {
    fn new() -> Self {
        World { groups: GroupCoordinator::default(), now: Duration::ZERO, partitions: 4 }
    }

    fn beat(&mut self, member: &str, epoch: i32, topics: Option<&[&str]>) -> Result<HeartbeatReply, ErrorCode> {
        let topics: Option<Vec<Str>> = topics.map(|list| list.iter().map(|t| Str::from(*t)).collect());
        let partitions = self.partitions;
        let beat = Heartbeat {
            group: &Str::from_static("g"),
            member: &Str::from(member),
            epoch,
            rack: None,
            topics: topics.as_deref(),
            client_id: &Str::from_static("c"),
            session_timeout_ms: 45_000,
            assignment_interval_ms: 1_000,
            max_members: 2,
            lookup: &|name| (name == "t").then_some((Uuid::from_halves(1, 1), partitions)),
        };
        self.groups.heartbeat(self.now, &beat).map_err(|refusal| refusal.code)
    }

    fn later(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }
}

const T: Option<&[&str]> = Some(&["t"]);

fn size(reply: &HeartbeatReply) -> Option<usize> {
    reply.assignment.as_ref().map(BTreeSet::len)
}

#[test]
fn first_member_gets_everything_at_once() {
    let mut world = World::new();
    let joined = world.beat("a", 0, T).unwrap();
    assert_eq!(size(&joined), Some(4));
    assert!(joined.epoch > 0);
    let stayed = world.beat("a", joined.epoch, None).unwrap();
    assert_eq!((stayed.epoch, size(&stayed)), (joined.epoch, None), "nothing changed");
}

#[test]
fn second_member_waits_for_the_assignment_interval() {
    let mut world = World::new();
    let a = world.beat("a", 0, T).unwrap();
    let b = world.beat("b", 0, T).unwrap();
    assert_eq!(size(&b), Some(0), "too early for a new assignment");
    world.later(1_000);
    let b = world.beat("b", b.epoch, None).unwrap();
    assert_eq!(size(&b), Some(2));
    let a = world.beat("a", a.epoch, None).unwrap();
    assert_eq!((a.epoch, size(&a)), (b.epoch, Some(2)));
}

//= SHARE-MEMBER-35
#[test]
fn epochs_are_checked() {
    let mut world = World::new();
    assert_eq!(world.beat("a", 1, None), Err(ErrorCode::GROUP_ID_NOT_FOUND));
    let a = world.beat("a", 0, T).unwrap();
    assert_eq!(world.beat("b", 3, None), Err(ErrorCode::UNKNOWN_MEMBER_ID));
    assert_eq!(world.beat("b", -1, None), Err(ErrorCode::UNKNOWN_MEMBER_ID));
    assert_eq!(world.beat("a", a.epoch + 1, None), Err(ErrorCode::FENCED_MEMBER_EPOCH));
    assert_eq!(world.beat("a", -2, None), Err(ErrorCode::INVALID_REQUEST));
    assert_eq!(world.beat("", 0, T), Err(ErrorCode::INVALID_REQUEST));
    assert_eq!(world.beat("a", 0, None), Err(ErrorCode::INVALID_REQUEST));
    world.later(1_000);
    world.beat("b", 0, T).unwrap();
    assert_eq!(world.beat("c", 0, T), Err(ErrorCode::GROUP_MAX_SIZE_REACHED));
    let newer = world.beat("a", a.epoch, None).unwrap();
    assert!(newer.epoch > a.epoch);
    assert!(world.beat("a", a.epoch, None).is_ok(), "the answer may have been lost");
    let rejoined = world.beat("a", 0, T).unwrap();
    assert_eq!((rejoined.epoch, size(&rejoined)), (newer.epoch, Some(2)));
    assert_eq!(world.beat("a", -1, None).unwrap().epoch, -1);
    assert_eq!(world.beat("a", newer.epoch, None), Err(ErrorCode::UNKNOWN_MEMBER_ID));
}

#[test]
fn silent_members_are_removed_and_their_partitions_go_to_others() {
    let mut world = World::new();
    world.beat("a", 0, T).unwrap();
    world.later(2_000);
    let b = world.beat("b", 0, T).unwrap();
    assert_eq!(world.groups.next_deadline(), Some(Duration::from_millis(45_000)));
    assert_eq!(world.groups.expire(Duration::from_millis(44_999)), None);
    assert_eq!(world.groups.expire(Duration::from_millis(45_000)), Some(("g".into(), "a".into())));
    assert_eq!(world.groups.expire(Duration::from_millis(45_000)), None);
    world.later(44_000);
    let b = world.beat("b", b.epoch, None).unwrap();
    assert_eq!(size(&b), Some(4));
}

#[test]
fn new_partitions_are_assigned() {
    let mut world = World::new();
    let a = world.beat("a", 0, T).unwrap();
    world.partitions = 6;
    world.later(5_000);
    let grown = world.beat("a", a.epoch, None).unwrap();
    assert_eq!((size(&grown), grown.epoch), (Some(6), a.epoch + 1));
}
