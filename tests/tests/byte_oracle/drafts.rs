//! The drafts of KIP-1289, which Java lacks: vectors worked out by hand, and what the fields of some must be.

use kafka_share_messages::{
    AddShareAcksToTxnRequest, ErrorCode, Message, TxnShareAcknowledgeRequest, TxnShareAcknowledgeResponse,
};
use kafka_share_tests::vectors::{Kind, Vector, drafts};

use super::{check_refusals, check_round_trip};

#[test]
fn drafts_have_the_bytes_worked_out_by_hand() {
    let vectors = drafts();
    for (kind, key) in [(Kind::Request, 95), (Kind::Response, 95), (Kind::Request, 96), (Kind::Response, 96)] {
        let count = vectors.iter().filter(|v| (v.kind, v.key) == (kind, key)).count();
        assert!(count >= 3, "{kind:?} {key} has only {count} vectors");
    }
    for vector in &vectors {
        check_round_trip(vector, "drafts.txt");
        check_refusals(vector, "drafts.txt");
    }
}

fn first(kind: Kind, key: i16) -> Vector {
    let found = drafts().into_iter().find(|v| (v.kind, v.key) == (kind, key));
    found.expect("drafts.txt has such a vector")
}

/// A round trip alone would not notice two fields of one type in the wrong order.
#[test]
fn txn_share_acknowledge_fields_are_in_order() {
    let request = TxnShareAcknowledgeRequest::decode_all(first(Kind::Request, 95).bytes, 0).expect("decodes");
    assert_eq!(request.transactional_id.as_deref(), Some("tx-1"));
    assert_eq!(&*request.group_id, "sg");
    assert_eq!((request.producer_id, request.producer_epoch), (1000, 5));
    assert_eq!((&*request.member_id, request.member_epoch), ("m1", 7));
    let partition = &request.topics[0].partitions[0];
    assert_eq!(partition.partition_index, 3);
    let ranges = &partition.acknowledgement_batches;
    assert_eq!((ranges[0].first_offset, ranges[0].last_offset, &*ranges[0].acknowledge_types), (10, 19, &[1][..]));
    assert_eq!((ranges[1].first_offset, ranges[1].last_offset), (20, 22));
    assert_eq!(*ranges[1].acknowledge_types, [1, 0, 3]);

    let response = TxnShareAcknowledgeResponse::decode_all(first(Kind::Response, 95).bytes, 0).expect("decodes");
    let [staged, refused] = &response.responses[0].partitions[..] else { panic!("two partitions") };
    assert_eq!((staged.partition_index, staged.error_code, &staged.error_message), (3, ErrorCode::NONE, &None));
    assert_eq!((refused.partition_index, refused.error_code), (4, ErrorCode::INVALID_RECORD_STATE));
    assert_eq!(refused.error_message.as_deref(), Some("lost"));
}

#[test]
fn add_share_acks_to_txn_fields_are_in_order() {
    let request = AddShareAcksToTxnRequest::decode_all(first(Kind::Request, 96).bytes, 0).expect("decodes");
    assert_eq!((&*request.transactional_id, &*request.group_id), ("tx-1", "sg"));
    assert_eq!((request.producer_id, request.producer_epoch), (1000, 5));
    assert_eq!(*request.topics[0].partitions, [0, 7]);
}
