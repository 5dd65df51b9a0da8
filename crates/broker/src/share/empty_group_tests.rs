//! What a group without members leaves behind, as Kafka 4.4.0 was seen to do.

use super::tests::{World, ranges};
use crate::share_coordinator::ShareKey;
use kafka_share_messages::ShareGroupHeartbeatRequest;
use kafka_share_wire::Str;

fn beat(world: &mut World, epoch: i32) {
    let request = ShareGroupHeartbeatRequest {
        group_id: Str::from_static("g"),
        member_id: Str::from_static("m"),
        member_epoch: epoch,
        subscribed_topic_names: (epoch == 0).then(|| vec![Str::from_static("t")]),
        ..Default::default()
    };
    assert!(world.client.call(&request).error_code.is_ok());
}

/// The next member begins with what is stored: a batch in flight is then as wide as its records of equal state, and
/// half of that is what a suspicious batch gives.
#[test]
fn the_last_member_that_leaves_takes_the_batches_in_flight_along() {
    for (leaves, wanted) in [(false, (0, 15, 34, 4)), (true, (0, 15, 26, 4))] {
        let mut world = World::new(1, 1);
        world.produce(0, 40);
        beat(&mut world, 0);
        assert_eq!(ranges(&world.fetch("m", 0, &[(0, &[])])), [(0, 0, 39, 1)]);
        assert_eq!(ranges(&world.fetch("m", 1, &[(0, &[(0, 14, &[1]), (15, 39, &[2])])])), [(0, 15, 39, 2)]);
        assert_eq!(ranges(&world.fetch("m", 2, &[(0, &[(15, 39, &[2])])])), [(0, 15, 39, 3)]);
        world.ack("m", 3, 0, &[(15, 39, &[2])]);
        if leaves {
            beat(&mut world, -1);
            beat(&mut world, 0);
        }
        assert_eq!(ranges(&world.fetch("m", 0, &[(0, &[])])), [wanted], "left: {leaves}");
    }
}

/// What is done to records writes the start. A group that leaves before is asked for its reset once more, so what was
/// produced meanwhile is not for it, as on Kafka.
#[test]
fn a_start_that_was_never_written_is_chosen_again() {
    let mut world = World::new(1, 1);
    world.set("share.auto.offset.reset", "latest");
    let describe = |world: &World| {
        let key = ShareKey { group: Str::from_static("g"), topic: world.topic, partition: 0 };
        world.client.cluster.share.progress(&key).map(|(start, ..)| start)
    };
    beat(&mut world, 0);
    world.fetch("m", 0, &[(0, &[])]);
    beat(&mut world, -1);
    world.produce(0, 5);
    beat(&mut world, 0);
    assert_eq!(ranges(&world.fetch("m", 0, &[(0, &[])])), []);
    world.produce(0, 5);
    assert_eq!(ranges(&world.fetch("m", 1, &[])), [(0, 5, 9, 1)]);
    assert_eq!(describe(&world), Some(-1), "acquiring writes nothing");
    beat(&mut world, -1);
    assert_eq!(describe(&world), Some(5), "a release does");
    beat(&mut world, 0);
    assert_eq!(ranges(&world.fetch("m", 0, &[(0, &[])])), [(0, 5, 9, 2)]);
    world.ack("m", 1, 0, &[(5, 9, &[1])]);
    assert_eq!(describe(&world), Some(5), "a write carries the start from before its effect");
    beat(&mut world, -1);
    beat(&mut world, 0);
    world.produce(0, 1);
    assert_eq!(ranges(&world.fetch("m", 0, &[(0, &[])])), [(0, 10, 10, 1)], "and the effect is not lost");
}
