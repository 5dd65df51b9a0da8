//! The same vectors through the kafka-protocol crate, an implementation that shares no code with ours.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as peer;
use kafka_protocol::protocol::{Decodable, Encodable, Message};
use kafka_share_tests::vectors::{Kind, SEED, Vector};

use super::java_vectors;

/// `None` where the crate lacks the version.
fn reencode_as<M: Message + Decodable + Encodable>(vector: &Vector) -> Option<Result<BytesMut, String>> {
    let versions = M::VERSIONS;
    if !(versions.min..=versions.max).contains(&vector.version) {
        return None;
    }
    let mut body: Bytes = vector.bytes.clone();
    let message = match M::decode(&mut body, vector.version) {
        Ok(message) => message,
        Err(e) => return Some(Err(format!("decode: {e}"))),
    };
    if !body.is_empty() {
        return Some(Err(format!("{} bytes left over", body.len())));
    }
    let mut out = BytesMut::new();
    Some(message.encode(&mut out, vector.version).map(|()| out).map_err(|e| format!("encode: {e}")))
}

macro_rules! reencode_by_key {
    ($($key:literal $request:ident $response:ident,)*) => {
        fn reencode(vector: &Vector) -> Option<Result<BytesMut, String>> {
            match (vector.kind, vector.key) {
                $((Kind::Request, $key) => reencode_as::<peer::$request>(vector),
                (Kind::Response, $key) => reencode_as::<peer::$response>(vector),)*
                (Kind::RequestHeader, _) => reencode_as::<peer::RequestHeader>(vector),
                (Kind::ResponseHeader, _) => reencode_as::<peer::ResponseHeader>(vector),
                _ => None,
            }
        }
    };
}

for_each_api!(reencode_by_key);

/// What kafka-protocol 0.18 lacks: key, and first version that is missing. The rest must be compared.
const LACKED: &[(i16, i16)] = &[(2, 11), (18, 5), (22, 6), (27, 2), (42, 3), (78, 2), (79, 2), (90, 1)];

#[test]
fn kafka_protocol_gives_the_same_bytes() {
    let Some(java) = java_vectors("kafka_protocol_gives_the_same_bytes") else {
        return;
    };
    let mut lacked = BTreeMap::<i16, i16>::new();
    for vector in &java.vectors {
        let Some(result) = reencode(vector) else {
            let first = lacked.entry(vector.key).or_insert(vector.version);
            *first = vector.version.min(*first);
            continue;
        };
        match result {
            Ok(theirs) => assert!(
                theirs[..] == vector.bytes[..],
                "{SEED}={}: {} bytes instead of {vector:?}",
                java.seed,
                theirs.len()
            ),
            Err(e) => panic!("{SEED}={}: {e}: {vector:?}", java.seed),
        }
    }
    assert_eq!(lacked.into_iter().collect::<Vec<_>>(), LACKED);
}
