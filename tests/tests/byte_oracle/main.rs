//! Our codec beside two others: Java's generated classes and, for what it has, the kafka-protocol crate.
//!
//! Java encodes seeded values of every message and version; we must decode each and encode it to the same bytes.
//! `KAFKA_SHARE_ORACLE_SEED` and `KAFKA_SHARE_ORACLE_COUNT` choose other values and more of them.

#[macro_use]
mod apis;
mod drafts;
mod facts;
mod peer;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_share_messages::dispatch::{reencode_request, reencode_response};
use kafka_share_messages::frame::reencode_header;
use kafka_share_tests::java;
use kafka_share_tests::specs::{self, Catalogue};
use kafka_share_tests::vectors::{self, JavaVectors, Kind, SEED, Vector};
use kafka_share_wire::Result;

/// Java's vectors, made once for all tests of this file. `None`: `test` is reported as skipped.
fn java_vectors(test: &str) -> Option<&'static JavaVectors> {
    static VECTORS: OnceLock<JavaVectors> = OnceLock::new();
    java::available(test).then(|| VECTORS.get_or_init(vectors::from_java))
}

fn reencode(vector: &Vector, bytes: Bytes) -> Result<Vec<u8>> {
    match vector.kind {
        Kind::Request => reencode_request(vector.key, vector.version, bytes),
        Kind::Response => reencode_response(vector.key, vector.version, bytes),
        Kind::RequestHeader => reencode_header("request_header", vector.version, bytes),
        Kind::ResponseHeader => reencode_header("response_header", vector.version, bytes),
    }
}

/// Fails unless the vector survives a decode and an encode byte for byte.
fn check_round_trip(vector: &Vector, context: &str) {
    match reencode(vector, vector.bytes.clone()) {
        Ok(ours) => {
            let differs = ours.iter().zip(&vector.bytes).position(|(a, b)| a != b);
            assert!(
                ours[..] == vector.bytes[..],
                "{context}: {vector:?}\nours has {} bytes and first differs at {differs:?}",
                ours.len()
            );
        }
        Err(e) => panic!("{context}: {vector:?}\nis refused: {e}"),
    }
}

/// Fails if a part of the vector, or the vector with more behind it, is taken for a whole message, or panics.
fn check_refusals(vector: &Vector, context: &str) {
    let len = vector.bytes.len();
    // Every cut of a small vector; of a large one its ends and a spread that differs from vector to vector.
    let step = (len / 24).max(1);
    let cuts = (vector.line % step..len).step_by(step).chain(len.saturating_sub(3)..len);
    for cut in cuts.chain(0..len.min(3)) {
        let result = reencode(vector, vector.bytes.slice(..cut));
        assert!(result.is_err(), "{context}: cut to {cut} bytes was accepted: {vector:?}");
    }
    for garbage in [&[0_u8][..], &[0xff; 5]] {
        let mut longer = BytesMut::from(&vector.bytes[..]);
        longer.put_slice(garbage);
        let result = reencode(vector, longer.freeze());
        assert!(result.is_err(), "{context}: {garbage:?} behind it was accepted: {vector:?}");
    }
}

type Counts = BTreeMap<(Kind, i16), BTreeMap<i16, usize>>;

/// One line a message: how many vectors each version had.
fn table(catalogue: &Catalogue, counts: &Counts) -> String {
    let mut text = String::new();
    for (id, (name, _)) in catalogue {
        write!(text, "{name:<36}").expect("a string takes it");
        for (version, count) in counts.get(id).into_iter().flatten() {
            write!(text, " v{version}:{count}").expect("a string takes it");
        }
        text.push('\n');
    }
    text
}

#[test]
fn every_message_and_version_has_the_bytes_of_java() {
    let test = "every_message_and_version_has_the_bytes_of_java";
    let Some(java) = java_vectors(test) else { return };
    let context = format!("{SEED}={}", java.seed);
    let mut counts = Counts::new();
    for vector in &java.vectors {
        check_round_trip(vector, &context);
        *counts.entry((vector.kind, vector.key)).or_default().entry(vector.version).or_default() += 1;
    }
    let catalogue = specs::catalogue();
    println!("{}{} vectors", table(&catalogue, &counts), java.vectors.len());
    for (id, (name, versions)) in &catalogue {
        for version in versions.clone() {
            let count = counts.get(id).and_then(|c| c.get(&version)).copied().unwrap_or(0);
            assert!(count >= 20, "{name} v{version} has only {count} vectors");
        }
    }
    assert_eq!(catalogue.len(), counts.len(), "vectors of messages that have no spec");
}

#[test]
fn cut_or_extended_bytes_of_java_are_refused() {
    let Some(java) = java_vectors("cut_or_extended_bytes_of_java_are_refused") else { return };
    let context = format!("{SEED}={}", java.seed);
    for vector in &java.vectors {
        check_refusals(vector, &context);
    }
}

#[test]
fn versions_outside_the_specs_are_refused() {
    for ((kind, key), (name, versions)) in specs::catalogue() {
        for version in [i16::MIN, -1, versions.start() - 1, versions.end() + 1, i16::MAX] {
            let vector = Vector { kind, key, version, bytes: Bytes::from_static(&[0; 64]), line: 0 };
            let result = reencode(&vector, vector.bytes.clone());
            assert!(result.is_err(), "{name} v{version} was accepted");
        }
    }
}
