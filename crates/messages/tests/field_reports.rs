//! Section F of the field reports, as far as messages are concerned: null records, tagged fields, leaders, lengths,
//! and counts that a hostile peer makes up.

use allocation_counter::measure;
use bytes::Bytes;
use kafka_share_messages::share_fetch_response::{LeaderIdAndEpoch, PartitionData, ShareFetchableTopicResponse};
use kafka_share_messages::{
    ApiInfo, ApiVersionsResponse, FetchResponse, Message, MetadataRequest, ProduceRequest, SaslAuthenticateRequest,
    ShareAcknowledgeRequest, ShareFetchRequest, ShareFetchResponse, dispatch, fetch_response, produce_request,
    share_acknowledge_request, share_acknowledge_response, share_fetch_request,
};
use kafka_share_wire::{ErrorKind, Str};

const ENDLESS: [&[u8]; 4] = [
    &[0x7f, 0xff, 0xff, 0xff],       // i32::MAX
    &[0xff, 0xff, 0xff, 0xff],       // -1, and as the front of a varint an endless one
    &[0xff, 0xff, 0xff, 0xff, 0x0f], // u32::MAX as a varint: 2^32 - 2 elements
    &[0x80, 0x80, 0x80, 0x80, 0x08], // 2^31 as a varint
];

#[test]
fn r112_array_counts_are_compared_with_the_bytes_left() {
    let topics = |version| MetadataRequest::decode_all(Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff]), version);
    assert!(matches!(topics(4).unwrap_err().kind, ErrorKind::CountTooLarge { .. }));
    let compact = MetadataRequest::decode_all(Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 0x07]), 13);
    assert!(matches!(compact.unwrap_err().kind, ErrorKind::CountTooLarge { .. }));
    // -2 is no count at all; -1 is null, which this array may be.
    let negative = MetadataRequest::decode_all(Bytes::from_static(&[0xff, 0xff, 0xff, 0xfe]), 4);
    assert!(matches!(negative.unwrap_err().kind, ErrorKind::InvalidLength(-2)));
    let null = MetadataRequest::decode_all(Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 0]), 4);
    assert_eq!(null.unwrap().topics, None);
}

#[test]
fn r122_null_and_empty_records_are_both_no_records() {
    let fetched = |records| FetchResponse {
        responses: vec![fetch_response::FetchableTopicResponse {
            partitions: vec![fetch_response::PartitionData { records, ..Default::default() }],
            ..Default::default()
        }],
        ..FetchResponse::default()
    };
    for records in [None, Some(Bytes::new())] {
        let bytes = fetched(records.clone()).to_bytes(17).unwrap();
        let read = FetchResponse::decode_all(bytes, 17).unwrap();
        assert_eq!(read.responses[0].partitions[0].records.clone().unwrap_or_default(), Bytes::new());
    }
    for version in 1..=2 {
        // A share fetch answer may not hold null: none are written as an empty set.
        let bytes = share_answer(PartitionData::default()).to_bytes(version).unwrap();
        let read = ShareFetchResponse::decode_all(bytes.clone(), version).unwrap();
        assert_eq!(read.responses[0].partitions[0].records, Some(Bytes::new()));
        // A broker that sends null all the same is understood.
        let marked = share_answer(PartitionData { records: Some(Bytes::from_static(b"R")), ..Default::default() });
        let mut bytes = marked.to_bytes(version).unwrap().to_vec();
        let at = bytes.windows(2).position(|w| w == [2, b'R']).unwrap();
        bytes.splice(at..at + 2, [0]);
        let read = ShareFetchResponse::decode_all(bytes.into(), version).unwrap();
        assert_eq!(read.responses[0].partitions[0].records, None);
    }
}

fn share_answer(partition: PartitionData) -> ShareFetchResponse {
    let topic = ShareFetchableTopicResponse { partitions: vec![partition], ..Default::default() };
    ShareFetchResponse { responses: vec![topic], ..Default::default() }
}

#[test]
fn r131_unknown_tagged_fields_are_kept_and_broken_ones_refused() {
    let mut response = ApiVersionsResponse { finalized_features_epoch: 7, ..ApiVersionsResponse::default() };
    response.tagged.insert(99, Bytes::from(vec![5; 300]));
    for version in 3..=5 {
        let bytes = response.to_bytes(version).unwrap();
        let read = ApiVersionsResponse::decode_all(bytes.clone(), version).unwrap();
        assert_eq!((&read, read.tagged.len()), (&response, 1));
        assert_eq!(read.to_bytes(version).unwrap(), bytes);
    }
    let plain = ApiVersionsResponse::default().to_bytes(3).unwrap();
    assert_eq!(plain.last(), Some(&0), "fields at their default are not written");
    let body = &plain[..plain.len() - 1];
    let tags: [&[u8]; 6] = [
        &[0xff, 0xff, 0xff, 0xff, 0x0f],       // 2^32 - 1 fields
        &[1, 99, 5, 0],                        // a size beyond the end
        &[2, 98, 0, 98, 0],                    // the same tag twice
        &[2, 98, 0, 97, 0],                    // descending
        &[1, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0], // a known field whose size does not fit its content
        &[1, 99],                              // no size
    ];
    for section in tags {
        let bytes = Bytes::from([body, section].concat());
        assert!(ApiVersionsResponse::decode_all(bytes, 3).is_err(), "{section:?}");
    }
}

#[test]
fn r133_leaders_are_read_exactly_and_arrays_are_never_null() {
    for version in 1..=2 {
        for leader_id in [16_777_217, -1, 0, i32::MAX] {
            let leader = LeaderIdAndEpoch { leader_id, leader_epoch: 5, ..Default::default() };
            let answer = share_answer(PartitionData {
                current_leader: leader.clone(),
                records: Some(Bytes::new()),
                ..Default::default()
            });
            let read = ShareFetchResponse::decode_all(answer.to_bytes(version).unwrap(), version).unwrap();
            assert_eq!(read.responses[0].partitions[0].current_leader, leader);
            let leader =
                share_acknowledge_response::LeaderIdAndEpoch { leader_id, leader_epoch: 5, ..Default::default() };
            let partition =
                share_acknowledge_response::PartitionData { current_leader: leader.clone(), ..Default::default() };
            let topic = share_acknowledge_response::ShareAcknowledgeTopicResponse {
                partitions: vec![partition],
                ..Default::default()
            };
            let answer =
                kafka_share_messages::ShareAcknowledgeResponse { responses: vec![topic], ..Default::default() };
            let bytes = answer.to_bytes(version).unwrap();
            let read = kafka_share_messages::ShareAcknowledgeResponse::decode_all(bytes, version).unwrap();
            assert_eq!(read.responses[0].partitions[0].current_leader, leader);
        }
        // Compact arrays: 1 is empty, 0 would be null. The request ends with topics, forgotten topics and no tags.
        let request =
            ShareFetchRequest { topics: vec![share_fetch_request::FetchTopic::default()], ..Default::default() };
        let bytes = request.to_bytes(version).unwrap();
        assert!(bytes.ends_with(&[1, 0, 1, 0]), "partitions, tags; forgotten topics, tags: {bytes:?}");
        let partition = share_acknowledge_request::AcknowledgePartition::default();
        let topic = share_acknowledge_request::AcknowledgeTopic { partitions: vec![partition], ..Default::default() };
        let bytes = ShareAcknowledgeRequest { topics: vec![topic], ..Default::default() }.to_bytes(version).unwrap();
        assert!(bytes.ends_with(&[1, 0, 0, 0]), "batches, tags, tags, tags: {bytes:?}");
    }
}

#[test]
fn r134_every_length_prefix_has_its_full_width() {
    for size in [0, 1, 127, 128, 16_383, 16_384, 32_767, 32_768, 70_000] {
        let payload = Bytes::from(vec![7; size]);
        for version in 0..=2 {
            let request = SaslAuthenticateRequest { auth_bytes: payload.clone(), ..Default::default() };
            let read = SaslAuthenticateRequest::decode_all(request.to_bytes(version).unwrap(), version).unwrap();
            assert_eq!(read, request, "{size} bytes in version {version}");
        }
        for version in 3..=13 {
            let partition =
                produce_request::PartitionProduceData { records: Some(payload.clone()), ..Default::default() };
            let topic = produce_request::TopicProduceData { partition_data: vec![partition], ..Default::default() };
            let request = ProduceRequest { topic_data: vec![topic], ..Default::default() };
            let read = ProduceRequest::decode_all(request.to_bytes(version).unwrap(), version).unwrap();
            assert_eq!(read, request, "{size} bytes of records in version {version}");
        }
        // Strings end at 32,767 bytes in Kafka's own codec, in both forms: refused, never cut.
        let request = ShareFetchRequest { group_id: Some(Str::from("g".repeat(size))), ..Default::default() };
        match request.to_bytes(2) {
            Ok(bytes) => assert_eq!(ShareFetchRequest::decode_all(bytes, 2).unwrap(), request),
            Err(error) => assert!(size > 32_767 && error.kind == ErrorKind::TooLong(size), "{size}: {error}"),
        }
    }
}

/// Every decoder, request and response side, with hostile counts at every place near its front.
#[test]
fn r136_no_decoder_takes_memory_on_the_word_of_a_peer() {
    let mut refused = 0;
    for info in ApiInfo::all() {
        for version in info.min_version..=info.max_version {
            for at in 0..48 {
                for count in ENDLESS {
                    for fill in [0, 1] {
                        let mut body = vec![fill; at];
                        body.extend_from_slice(count);
                        body.extend_from_slice(&[fill; 16]);
                        let body = Bytes::from(body);
                        let used = measure(|| {
                            refused +=
                                usize::from(dispatch::reencode_request(info.key.0, version, body.clone()).is_err());
                            refused +=
                                usize::from(dispatch::reencode_response(info.key.0, version, body.clone()).is_err());
                        });
                        let limit = 64 << 10;
                        assert!(
                            used.bytes_max < limit,
                            "{} v{version}: {} bytes for {body:?}",
                            info.name,
                            used.bytes_max
                        );
                    }
                }
            }
        }
    }
    assert!(refused > 10_000, "{refused}");
}
