//! Writes the seeds of the fuzz targets: `cargo run -p kafka-share-tests --example fuzz_seeds` (needs Java and Maven).
//!
//! Messages are those of Kafka's own encoder, as the byte oracle has them; batches are written here, one per codec.

use kafka_share_core::ledger::{ClaimedRange, GroupClaims, Intent, IntentKey, Layout, LedgerRecord};
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_core::share_acks::AckType;
use kafka_share_messages::ApiInfo;
use kafka_share_tests::vectors::{Kind, Vector, drafts, from_java};
use kafka_share_wire::Uuid;
use kafka_share_wire::compression::Compression;
use kafka_share_wire::records::{BatchBuilder, BatchOptions, Header};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Longer vectors are left out: small seeds mutate better.
const LONGEST: usize = 400;

/// Messages of the target `share_messages`, in its order.
const SHARE: &[(Kind, i16)] = &[
    (Kind::Request, 78),
    (Kind::Request, 79),
    (Kind::Response, 79),
    (Kind::Request, 76),
    (Kind::Response, 76),
    (Kind::Response, 77),
    (Kind::Request, 95),
    (Kind::Response, 95),
    (Kind::Response, 78),
];

fn main() {
    let mut vectors = from_java().vectors;
    vectors.extend(drafts());
    vectors.retain(|v| v.key >= 0 && v.bytes.len() <= LONGEST && matches!(v.kind, Kind::Request | Kind::Response));
    // The longest of each message and version says most.
    let mut chosen: BTreeMap<(Kind, i16, i16), Vector> = BTreeMap::new();
    for vector in vectors {
        let slot = chosen.entry((vector.kind, vector.key, vector.version)).or_insert_with(|| vector.clone());
        if vector.bytes.len() > slot.bytes.len() {
            *slot = vector;
        }
    }
    messages(&chosen);
    share_messages(&chosen);
    frames(&chosen);
    record_batches();
    ledger();
    share_consumer();
    broker();
}

fn write(target: &str, name: &str, bytes: &[u8]) {
    let dir: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    fs::create_dir_all(&dir).expect("a folder for the seeds");
    fs::write(dir.join(name), bytes).expect("a seed can be written");
}

/// Key and value of each kind of record, as the target cuts them.
fn ledger() {
    let layout = Layout::new(1).expect("one partition");
    let tp = TopicIdPartition { topic_id: Uuid([7; 16]), partition: 3 };
    let range = |first, last, ack| ClaimedRange { first, last, ack };
    let claims = vec![range(5, 9, AckType::Accept), range(10, 10, AckType::Reject), range(900, 1000, AckType::Accept)];
    let groups = vec![GroupClaims { group: "g".into(), generation: 2, claims: BTreeMap::from([(tp, claims)]) }];
    let intent = Intent { transactional_id: "app-1".into(), two_phase: false, native: false, groups };
    let key = IntentKey { instance: Uuid([9; 16]), counter: 1 };
    let (key, value) = LedgerRecord::Intent(key, intent).encode(layout);
    write("ledger", "intent", &[&key[..], &value.unwrap_or_default()].concat());
    let steps =
        |seed: u8| (0..=255_u8).map(|i| i.wrapping_mul(seed).rotate_left(u32::from(i % 5))).collect::<Vec<u8>>();
    for seed in [3, 7, 29, 101] {
        write("ledger", &format!("steps-{seed}"), &[steps(seed), steps(seed + 2)].concat());
    }
}

fn messages(chosen: &BTreeMap<(Kind, i16, i16), Vector>) {
    for (index, info) in ApiInfo::all().iter().enumerate() {
        for (number, kind) in [Kind::Request, Kind::Response].into_iter().enumerate() {
            // The oldest, the newest and the one between bring each field at least once.
            let middle = i16::midpoint(info.min_version, info.max_version);
            for version in [info.min_version, middle, info.max_version] {
                let Some(vector) = chosen.get(&(kind, info.key.0, version)) else { continue };
                let head = [number as u8, index as u8, (version - info.min_version + 1) as u8];
                let name = format!("{}-{}-v{version}", info.name, if number == 0 { "request" } else { "response" });
                write("messages", &name, &[&head[..], &vector.bytes].concat());
            }
        }
    }
}

fn share_messages(chosen: &BTreeMap<(Kind, i16, i16), Vector>) {
    for (number, (kind, key)) in SHARE.iter().enumerate() {
        for ((_, _, version), vector) in chosen.iter().filter(|((k, a, _), _)| k == kind && a == key) {
            let min = ApiInfo::all().iter().find(|i| i.key.0 == *key).map_or(0, |i| i.min_version);
            let head = [number as u8, (version - min) as u8];
            write("share_messages", &format!("{number}-v{version}"), &[&head[..], &vector.bytes].concat());
        }
    }
}

fn frames(chosen: &BTreeMap<(Kind, i16, i16), Vector>) {
    for ((_, key, version), vector) in chosen.iter().filter(|((k, key, _), _)| *k == Kind::Request && key % 4 == 2) {
        let flexible = ApiInfo::all().iter().any(|i| i.key.0 == *key && i.request_header_version(*version) == 2);
        let mut frame = [key.to_be_bytes(), version.to_be_bytes()].concat();
        frame.extend([0, 0, 0, 1, 0xff, 0xff]);
        frame.extend(flexible.then_some(0));
        frame.extend_from_slice(&vector.bytes);
        let size = (frame.len() as u32).to_be_bytes();
        write("frames", &format!("{key}-v{version}"), &[&[200][..], &size, &frame].concat());
    }
    // The answer to ApiVersions v3 or v4 of a handshake, and two answers after it.
    let Some(versions) = chosen.get(&(Kind::Response, 18, 4)) else { return };
    let mut stream = vec![15];
    for (id, body) in [(0_u32, &versions.bytes[..]), (2, b"x"), (1, b"yz")] {
        stream.extend((body.len() as u32 + 4).to_be_bytes());
        stream.extend(id.to_be_bytes());
        stream.extend_from_slice(body);
    }
    write("frames", "handshake", &stream);
}

fn record_batches() {
    let codecs = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    for compression in codecs {
        let options = BatchOptions { compression, base_offset: 7, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options);
        for i in 0..5_i64 {
            let headers = [Header::new("k", Some(b"v")), Header::new("n", None)];
            let value = b"a value that repeats, repeats".as_slice();
            builder
                .append(i, (i % 2 == 0).then_some(&b"key"[..]), (i != 3).then_some(value), headers)
                .expect("a record");
        }
        let bytes = builder.finish().expect("a batch");
        write("record_batches", &compression.to_string(), &bytes);
        write("record_batches", &format!("{compression}-cut"), &[&bytes[..], &bytes[..70]].concat());
    }
}

/// Bytes without meaning: the target reads them as choices.
fn share_consumer() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for number in 0..8 {
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .take(1024)
        .collect();
        write("share_consumer", &format!("random-{number}"), &bytes);
    }
}

/// Programs of requests: each kind of cluster gets a stretch of the valid ones in order, then some in leaps.
fn broker() {
    for kind in 0..16_u8 {
        let mut program = vec![kind];
        for step in 0..120_u16 {
            let at = if step < 60 { u16::from(kind) * 10 + step } else { step * 37 };
            // A valid request, by one of four connections, unchanged.
            program.extend([7, (step % 4) as u8]);
            program.extend(at.to_be_bytes());
            program.push(0);
            if step % 16 == 15 {
                // Some milliseconds, some seconds.
                program.extend([(step % 2) as u8, 0, 0, 200]);
            }
        }
        write("broker", &format!("program-{kind}"), &program);
    }
}
