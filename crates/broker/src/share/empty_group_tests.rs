//! What a group without members leaves behind, as Kafka 4.4.0 was seen to do.

use super::tests::{World, ranges};
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
