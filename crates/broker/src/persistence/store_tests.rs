//! Tests of a data directory: what a crash leaves is cut off, damage is told, files that are mostly dead are rewritten.

use super::*;
use kafka_share_wire::Uuid;
use tempfile::TempDir;

const A: LogId = (Uuid([1; 16]), 0);
const B: LogId = (Uuid([0xab; 16]), 7);

fn value(n: i64) -> Bytes {
    Bytes::copy_from_slice(&n.to_be_bytes())
}

fn put(key: Key, n: i64) -> Changes {
    Changes { values: BTreeMap::from([(key, Some(value(n)))]), ..Changes::default() }
}

fn append(id: LogId, bytes: &'static [u8]) -> Changes {
    Changes { logs: BTreeMap::from([(id, LogChange::Append(Bytes::from_static(bytes)))]), ..Changes::default() }
}

fn open(directory: &TempDir) -> Result<(Store, Saved), DataDirError> {
    Store::open(directory.path(), false)
}

/// A directory with two commits; the journal's length after the first.
fn filled() -> (TempDir, u64) {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, saved) = open(&directory).unwrap();
    assert_eq!(saved, Saved::default());
    let mut first = append(A, b"one");
    first.values.insert(Key::ProducerId, Some(value(1)));
    store.commit(first).unwrap();
    let len = store.journal_len;
    let mut second = append(A, b"two");
    second.values.insert(Key::ProducerId, Some(value(2)));
    store.commit(second).unwrap();
    (directory, len)
}

fn journal(directory: &TempDir) -> PathBuf {
    directory.path().join("journal-0000000001")
}

fn log(directory: &TempDir) -> PathBuf {
    let mut logs = fs::read_dir(directory.path().join("logs")).unwrap();
    logs.next().unwrap().unwrap().path()
}

fn state(saved: &Saved) -> (Option<i64>, &[u8]) {
    let number = saved.values.get(&Key::ProducerId).map(|bytes| i64::from_be_bytes(bytes[..].try_into().unwrap()));
    (number, saved.logs.get(&A).map_or(&[], |bytes| &bytes[..]))
}

#[test]
fn commits_are_there_after_a_restart() {
    let (directory, _) = filled();
    let (mut store, saved) = open(&directory).unwrap();
    assert_eq!(state(&saved), (Some(2), &b"onetwo"[..]));
    let removed = Changes {
        values: BTreeMap::from([(Key::ProducerId, None), (Key::Cluster, Some(value(9)))]),
        logs: BTreeMap::from([(A, LogChange::Remove), (B, LogChange::Append(Bytes::from_static(b"b")))]),
    };
    store.commit(removed).unwrap();
    assert_eq!(fs::read_dir(directory.path().join("logs")).unwrap().count(), 1, "the removed log's file is gone");
    drop(store);
    let (_, saved) = open(&directory).unwrap();
    assert_eq!(saved.values, BTreeMap::from([(Key::Cluster, value(9))]));
    assert_eq!(saved.logs, HashMap::from([(B, Bytes::from_static(b"b"))]));
}

#[test]
fn a_journal_cut_anywhere_gives_whole_commits() {
    let (directory, first) = filled();
    let whole = fs::read(journal(&directory)).unwrap();
    for len in 0..=whole.len() as u64 {
        fs::write(journal(&directory), &whole[..len as usize]).unwrap();
        // Like the log of a commit that was cut short, this one may be longer than the journal knows.
        fs::write(directory.path().join("logs").join(log_name()), b"onetwo").unwrap();
        if len < first {
            // The journal is no longer one that the records could come from: they are not thrown away.
            assert!(matches!(open(&directory), Err(DataDirError::Corrupt { offset: 0, .. })), "{len} bytes");
            assert!(log(&directory).exists());
            continue;
        }
        let (mut store, saved) = open(&directory).unwrap();
        let expected: (Option<i64>, &[u8]) = match len {
            _ if len == whole.len() as u64 => (Some(2), b"onetwo"),
            _ => (Some(1), b"one"),
        };
        assert_eq!(state(&saved), expected, "{len} of {} bytes", whole.len());
        // What comes next goes in the place of what was cut.
        store.commit(append(A, b"new")).unwrap();
        drop(store);
        let (_, saved) = open(&directory).unwrap();
        assert_eq!(state(&saved).1, [expected.1, b"new"].concat(), "{len} bytes");
    }
}

fn log_name() -> String {
    format!("{}-0-0.batches", "01".repeat(16))
}

#[test]
fn zeros_behind_the_last_commit_are_cut() {
    let (directory, _) = filled();
    let mut bytes = fs::read(journal(&directory)).unwrap();
    bytes.extend([0; 500]);
    fs::write(journal(&directory), bytes).unwrap();
    assert_eq!(state(&open(&directory).unwrap().1), (Some(2), &b"onetwo"[..]));
}

#[test]
fn damage_is_told_with_file_and_place() {
    let (directory, first) = filled();
    let whole = fs::read(journal(&directory)).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(journal(&directory), bytes).unwrap();
        let frame = if (at as u64) < first { 0 } else { first };
        match open(&directory) {
            Err(DataDirError::Corrupt { path, offset, .. }) => {
                assert_eq!((path, offset), (journal(&directory), frame), "byte {at}");
            }
            other => panic!("byte {at}: {other:?}"),
        }
    }
    // The power went before the end of the last commit was written.
    let mut bytes = whole.clone();
    bytes[first as usize + 16..].fill(0);
    fs::write(journal(&directory), bytes).unwrap();
    assert_eq!(state(&open(&directory).unwrap().1), (Some(1), &b"one"[..]));
}

#[test]
fn a_rewritten_journal_that_is_damaged_or_cut_costs_nothing_else() {
    let (directory, _) = filled();
    let (mut store, saved) = open(&directory).unwrap();
    store.rewrite_journal().unwrap();
    let path = store.directory.journal(store.number);
    drop(store);
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        for bytes in [&flipped[..], &whole[..at]] {
            fs::write(&path, bytes).unwrap();
            let error = open(&directory).unwrap_err();
            assert!(matches!(&error, DataDirError::Corrupt { offset: 0, .. }), "byte {at}: {error}");
        }
    }
    // From a copy of the journal all is there again.
    fs::write(&path, &whole).unwrap();
    assert_eq!(open(&directory).unwrap().1, saved);
}

#[test]
fn a_log_that_is_shorter_than_acknowledged_is_told() {
    let (directory, _) = filled();
    fs::write(log(&directory), b"onet").unwrap();
    let error = open(&directory).unwrap_err();
    assert!(matches!(&error, DataDirError::Corrupt { offset: 4, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(&log_name()) && text.contains("6 bytes were acknowledged"), "{text}");
    assert!(text.contains("from a copy"), "{text}");
    fs::remove_file(log(&directory)).unwrap();
    assert!(matches!(open(&directory), Err(DataDirError::Io { action: "read", .. })));
}

#[test]
fn a_journal_that_is_gone_is_told() {
    let (directory, _) = filled();
    fs::remove_file(journal(&directory)).unwrap();
    assert!(matches!(open(&directory), Err(DataDirError::Corrupt { .. })));
}

#[test]
fn one_broker_at_a_time() {
    let (directory, _) = filled();
    let store = open(&directory).unwrap();
    assert!(matches!(open(&directory), Err(DataDirError::InUse { .. })));
    drop(store);
    open(&directory).unwrap();
}

#[test]
fn a_journal_of_old_values_is_rewritten() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(directory.path(), true).unwrap();
    store.commit(append(A, b"batches")).unwrap();
    store.commit(put(Key::Cluster, 5)).unwrap();
    let large = |n: u8| Changes {
        values: BTreeMap::from([(Key::Group("g".into()), Some(Bytes::from(vec![n; 1 << 20])))]),
        ..Changes::default()
    };
    for n in 0..40 {
        store.commit(large(n)).unwrap();
        let bytes = fs::metadata(directory.path().join(format!("journal-{:010}", store.number))).unwrap().len();
        assert!(bytes < 11 << 20, "{bytes} bytes");
    }
    assert!(store.number > 3);
    store.commit(large(39)).unwrap();
    let len = store.journal_len;
    store.commit(large(39)).unwrap();
    assert_eq!(store.journal_len, len, "an equal value is not written again");
    drop(store);
    let (store, saved) = open(&directory).unwrap();
    assert_eq!(saved.values[&Key::Cluster], value(5));
    assert_eq!(saved.values[&Key::Group("g".into())], vec![39; 1 << 20]);
    assert_eq!(&saved.logs[&A][..], b"batches");
    assert_eq!(store.directory.journals().unwrap().len(), 1);
}

#[test]
fn a_rewritten_log_takes_a_new_file() {
    let (directory, _) = filled();
    let (mut store, _) = open(&directory).unwrap();
    let rewrite = LogChange::Rewrite(Bytes::from_static(b"2"));
    store.commit(Changes { logs: BTreeMap::from([(A, rewrite)]), ..Changes::default() }).unwrap();
    store.commit(append(A, b"3")).unwrap();
    drop(store);
    // A file that no commit knows, as a rewrite leaves that was cut short.
    let stray = directory.path().join("logs").join(log_name().replace("-0.", "-2."));
    fs::write(&stray, b"stray").unwrap();
    let (_, saved) = open(&directory).unwrap();
    assert_eq!(state(&saved).1, b"23");
    assert_eq!((stray.exists(), log(&directory).to_string_lossy().contains("-0-1.")), (false, true));
}

#[test]
fn keys_are_read_back() {
    let keys = [
        Key::Cluster,
        Key::ProducerId,
        Key::Topic(A.0),
        Key::Log(B),
        Key::GroupConfig("g".into()),
        Key::Txn("t".into()),
        Key::Group("ü".into()),
        Key::Share("g".into(), A.0, 3),
    ];
    for key in keys {
        assert_eq!(Key::decode(&key.encode()), Some(key));
    }
    assert_eq!(Key::decode(&Bytes::from_static(&[99])), None);
    assert_eq!(Key::decode(&Bytes::from_static(&[1, 0])), None);
}
