//! Golden bytes of the ledger format, and bytes that no writer makes.

use super::*;
use proptest::prelude::*;

const LAYOUT: Layout = Layout { partitions: 300 };
const KEY: IntentKey = IntentKey { instance: Uuid([0xab; 16]), counter: 0x0102_0304 };

fn tp(topic: u8, partition: i32) -> TopicIdPartition {
    TopicIdPartition { topic_id: Uuid([topic; 16]), partition }
}

fn accept(first: i64, last: i64) -> ClaimedRange {
    ClaimedRange { first, last, ack: AckType::Accept }
}

fn reject(first: i64, last: i64) -> ClaimedRange {
    ClaimedRange { ack: AckType::Reject, ..accept(first, last) }
}

/// The example of `protocol-specs/ledger/README.md`.
fn example() -> Intent {
    let claims =
        Claims::from([(tp(0x11, 0), vec![accept(1000, 1003), reject(1004, 1004)]), (tp(0x11, 2), vec![accept(0, 0)])]);
    let part = GroupClaims { group: "billing".into(), generation: 2, claims };
    Intent { transactional_id: "app-1".into(), two_phase: false, native: false, groups: vec![part] }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn golden(name: &str) -> String {
    let text = include_str!("../../../../protocol-specs/ledger/README.md");
    let line = text.lines().find_map(|l| l.strip_prefix(&format!("    {name}: ")));
    line.unwrap_or_else(|| panic!("{name} is not in the specification")).replace(' ', "")
}

fn read(key: &[u8], value: Option<&[u8]>) -> Result<LedgerRecord> {
    LedgerRecord::decode(Some(key), value, LAYOUT)
}

#[test]
fn bytes_are_those_of_the_specification() {
    let intent = LedgerRecord::Intent(KEY, example());
    let (key, value) = intent.encode(LAYOUT);
    let value = value.unwrap();
    assert_eq!(hex(&key), golden("intent key"));
    assert_eq!(hex(&value), golden("intent value"));
    assert_eq!(read(&key, Some(&value)), Ok(intent));

    let raised = LedgerRecord::Generation { group: "billing".into(), generation: 3 };
    let (key, value) = raised.encode(LAYOUT);
    let value = value.unwrap();
    assert_eq!(hex(&key), golden("generation key"));
    assert_eq!(hex(&value), golden("generation value"));
    assert_eq!(read(&key, Some(&value)), Ok(raised));

    let left = LedgerRecord::Left { group: "billing".into(), generation: 3 };
    let (key, value) = left.encode(LAYOUT);
    assert_eq!(hex(&key), golden("leaving key"));
    assert_eq!(value.as_deref().map(hex), Some(golden("generation value")));
    assert_eq!(read(&key, value.as_deref()), Ok(left));

    let both = LedgerRecord::Intent(KEY, Intent { native: true, two_phase: true, ..example() });
    let (key, value) = both.encode(LAYOUT);
    assert_eq!(value.as_ref().map(|v| v[6]), Some(3), "flags");
    assert_eq!(read(&key, value.as_deref()), Ok(both));

    let (key, value) = LedgerRecord::Tombstone(KEY).encode(LAYOUT);
    assert_eq!((hex(&key), value), (golden("intent key"), None));
    assert_eq!(read(&key, None), Ok(LedgerRecord::Tombstone(KEY)));
}

#[test]
fn groups_go_to_partitions_as_the_specification_says() {
    let text = include_str!("../../../../protocol-specs/ledger/README.md");
    let mut rows = 0;
    for line in text.lines().filter_map(|l| l.strip_prefix("| `")) {
        let cells: Vec<&str> = line.split('|').map(|c| c.trim().trim_matches('`')).collect();
        let [group, one, eight, many, ..] = cells[..] else { continue };
        let (Ok(one), Ok(eight), Ok(many)) = (one.parse::<i32>(), eight.parse::<i32>(), many.parse::<i32>()) else {
            continue;
        };
        for (partitions, expected) in [(1, one), (8, eight), (300, many)] {
            assert_eq!(Layout::new(partitions).unwrap().partition_for(group), expected, "{group} of {partitions}");
        }
        rows += 1;
    }
    assert!(rows >= 3, "the table was not found");
    assert_eq!((Layout::new(0), Layout::new(u32::MAX)), (None, None));
}

#[test]
fn what_others_wrote_is_refused_by_name() {
    let (key, value) = LedgerRecord::Intent(KEY, example()).encode(LAYOUT);
    let value = value.unwrap();
    let with = |at: usize, byte: u8| {
        let mut value = value.to_vec();
        value[at] = byte;
        read(&key, Some(&value))
    };
    assert_eq!(with(2, 2), Err(FormatError::Newer(2)));
    assert_eq!(with(2, 0), Err(FormatError::Damaged("format 0")));
    assert!(matches!(with(3, 9), Err(FormatError::OtherLayout { hash: 9, .. })));
    assert!(matches!(with(4, 0x2d | 0x80), Err(FormatError::OtherLayout { found: 301, here: 300, .. })));
    assert!(matches!(with(0, b'{'), Err(FormatError::Foreign(_))));
    assert!(matches!(with(6, 4), Err(FormatError::Damaged("unknown flags"))));
    assert!(matches!(LedgerRecord::decode(None, Some(&value), LAYOUT), Err(FormatError::Foreign(_))));
    assert!(matches!(read(b"", Some(&value)), Err(FormatError::Foreign(_))));
    assert!(matches!(read(b"user-17", Some(b"hello")), Err(FormatError::Foreign(_))));
    assert!(matches!(read(b"user-17", None), Err(FormatError::Foreign(_))));
    // A kind of a later format, in a value that says so.
    assert_eq!(read(&[9, 1, 2], Some(b"KL\x07")), Err(FormatError::Newer(7)));
    assert!(matches!(read(&[9, 1, 2], Some(&value)), Err(FormatError::Damaged(_))));
    assert!(matches!(read(&[2, b'g'], None), Err(FormatError::Damaged(_))));
    assert!(matches!(read(&[3, b'g'], None), Err(FormatError::Damaged(_))));
    assert!(FormatError::Newer(2).to_string().contains("upgrade"));
}

#[test]
fn nothing_may_be_missing_or_left_over() {
    let (key, value) = LedgerRecord::Intent(KEY, example()).encode(LAYOUT);
    let value = value.unwrap();
    for end in 0..value.len() {
        assert!(read(&key, Some(&value[..end])).is_err(), "{end} bytes");
    }
    assert!(read(&key, Some(&[&value[..], &[0]].concat())).is_err());
    for end in 1..key.len() {
        assert!(read(&key[..end], Some(&value)).is_err() && read(&key[..end], None).is_err(), "{end} bytes of the key");
    }
}

#[test]
fn announced_counts_take_no_memory() {
    let mut value = start(LAYOUT);
    value.put_slice(&[0, 1, b't']);
    encode_uvarlong(u64::MAX, &mut value);
    assert_eq!(read(&KEY.encode(), Some(&value)), Err(FormatError::Damaged("a count")));
}

#[test]
fn offsets_end_where_offsets_end() {
    let mut intent = example();
    intent.groups[0].claims = Claims::from([(tp(1, 0), vec![accept(0, 4), accept(5, i64::MAX - 1)])]);
    let record = LedgerRecord::Intent(KEY, intent.clone());
    let (key, value) = record.encode(LAYOUT);
    assert_eq!(read(&key, value.as_deref()), Ok(record));
    intent.groups[0].claims = Claims::from([(tp(1, 0), vec![accept(5, i64::MAX)])]);
    let (key, value) = LedgerRecord::Intent(KEY, intent).encode(LAYOUT);
    assert_eq!(read(&key, value.as_deref()), Err(FormatError::Damaged("an offset")));
}

fn any_ranges() -> impl Strategy<Value = Vec<ClaimedRange>> {
    let part = (0..1_i64 << 40, 0..1_i64 << 20, any::<bool>());
    prop::collection::vec(part, 1..8).prop_map(|parts| {
        let mut next = 0;
        let mut range = |(distance, length, accepted): (i64, i64, bool)| {
            let first = next + distance;
            next = first + length + 1;
            if accepted { accept(first, next - 1) } else { reject(first, next - 1) }
        };
        parts.into_iter().map(&mut range).collect()
    })
}

fn any_intent() -> impl Strategy<Value = Intent> {
    let claims = prop::collection::btree_map((0..4_u8, 0..i32::MAX), any_ranges(), 1..5);
    let claims = claims.prop_map(|map| map.into_iter().map(|((t, p), ranges)| (tp(t, p), ranges)).collect());
    let groups = prop::collection::btree_map("[a-zé]{1,20}", (any::<u64>(), claims), 1..3);
    ("\\PC{1,40}", any::<(bool, bool)>(), groups).prop_map(|(id, (two_phase, native), groups)| {
        let part = |(group, (generation, claims)): (String, (u64, Claims))| GroupClaims {
            group: group.into(),
            generation,
            claims,
        };
        Intent { transactional_id: id.into(), two_phase, native, groups: groups.into_iter().map(part).collect() }
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read(intent in any_intent(), instance: [u8; 16], counter: u64) {
        let record = LedgerRecord::Intent(IntentKey { instance: Uuid(instance), counter }, intent);
        let (key, value) = record.encode(LAYOUT);
        prop_assert_eq!(read(&key, value.as_deref()), Ok(record));
    }

    #[test]
    fn damage_is_an_error_or_another_valid_record(intent in any_intent(), at: prop::sample::Index, byte: u8) {
        let (key, value) = LedgerRecord::Intent(KEY, intent).encode(LAYOUT);
        let mut value = value.unwrap().to_vec();
        let at = at.index(value.len());
        value[at] = byte;
        if let Ok(record) = read(&key, Some(&value)) {
            // One form for each record: what is read would be written so (topics may stand in another order).
            let (_, again) = record.encode(LAYOUT);
            prop_assert_eq!(read(&key, again.as_deref()), Ok(record));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(key: Vec<u8>, value: Vec<u8>) {
        let _ = read(&key, Some(&value));
        let mut framed = start(LAYOUT);
        framed.put_slice(&value);
        let _ = read(&KEY.encode(), Some(&framed));
    }
}
