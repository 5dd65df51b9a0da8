//! Exactly-once by offsets in the database: two tasks with the same record, records of long ago, groups that are reset, topics
//! that are created again.

use super::common::{Database, Keyed, keyed};
use crate::common::{Bench, PATIENCE, TOPIC, accepted, failure, until};
use kafka_share::admin::{NewTopic, OffsetReset};
use kafka_share_connect::Worker;
use std::ops::Range;

/// No key: what is written twice is there twice.
const TABLE: &str = "CREATE TABLE \"in\" (n int);";
const EXACTLY_ONCE: (&str, &str) = ("share.delivery.semantics", "exactly-once");
/// The first insert into a table waits until the test lets it go.
const GATE: &str = "CREATE SEQUENCE inserts;
    CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN IF nextval(''inserts'') = 1 THEN PERFORM pg_advisory_xact_lock(42); END IF; RETURN NULL; END';";
const SHUT: &str = "SELECT pg_advisory_lock(42)";
const OPEN: &str = "SELECT pg_advisory_unlock(42)";
const AT_THE_GATE: &str = "SELECT count(*) = 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()";

fn numbers(range: Range<i32>) -> Vec<Keyed> {
    range.map(|n| (None, keyed("", &format!("{{\"n\":{n}}}")).1)).collect()
}

async fn stored(db: &Database) -> Vec<String> {
    db.texts("SELECT n::text FROM \"in\" ORDER BY \"in\".n").await
}

fn expected(range: Range<i32>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

async fn gated(name: &str, table: &str, when: &str) -> Option<Database> {
    let trigger = format!("CREATE TRIGGER gate {when} INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION gate()");
    let offsets = "CREATE TABLE _kafka_share_offsets (partition_id bigint, \"offset\" bigint, PRIMARY KEY (partition_id, \"offset\"));";
    let db = Database::new(name, &format!("{TABLE}{offsets}{GATE}{trigger}")).await?;
    db.client.batch_execute(SHUT).await.expect("shut");
    Some(db)
}

/// The one task's records go to the other.
async fn taken_away(bench: &Bench) {
    let broker = bench.broker.as_ref().expect("broker");
    assert_eq!(broker.expire_locks("connect-sink"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_tasks_with_the_same_records_the_second_waits_and_passes_over_them() {
    let Some(db) = gated("race", "\"in\"", "AFTER").await else { return };
    let bench = Bench::start(1).await;
    bench.send(1, numbers(0..10)).await;
    let mut first = bench.sink(&db.url, &[EXACTLY_ONCE]).await;
    // It has written everything, and has not committed.
    db.until("the first put waits", AT_THE_GATE).await;
    let mut second = bench.sink(&db.url, &[EXACTLY_ONCE]).await;
    taken_away(&bench).await;
    let behind = "SELECT count(*) = 1 FROM pg_locks l WHERE l.locktype = 'transactionid' AND NOT l.granted";
    db.until("the second waits for the first", behind).await;
    assert_eq!((accepted(&second.status()), stored(&db).await.len()), (0, 0));
    db.client.batch_execute(OPEN).await.expect("open");
    until(&second, "10 accepted", |s| accepted(s) == 10).await;
    bench.all_done(&[(0, 10)]).await;
    first.stop(PATIENCE).await;
    second.stop(PATIENCE).await;
    assert_eq!(stored(&db).await, expected(0..10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_dies_while_another_waits_leaves_it_the_records() {
    let Some(db) = gated("dies", "\"in\"", "AFTER").await else { return };
    let bench = Bench::start(1).await;
    bench.send(1, numbers(0..10)).await;
    let first = bench.sink(&db.url, &[EXACTLY_ONCE]).await;
    db.until("the first put waits", AT_THE_GATE).await;
    let mut second = bench.sink(&db.url, &[EXACTLY_ONCE]).await;
    taken_away(&bench).await;
    let behind = "SELECT count(*) = 1 FROM pg_locks l WHERE l.locktype = 'transactionid' AND NOT l.granted";
    db.until("the second waits for the first", behind).await;
    drop(first);
    db.client.batch_execute(OPEN).await.expect("open");
    until(&second, "10 accepted", |s| accepted(s) == 10).await;
    second.stop(PATIENCE).await;
    assert_eq!(stored(&db).await, expected(0..10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_forgotten_is_not_written_by_a_task_that_holds_it_still() {
    // The first task stands before its claim; what the second stores is forgotten meanwhile.
    let Some(db) = gated("late", "_kafka_share_offsets", "BEFORE").await else { return };
    let bench = Bench::start(1).await;
    bench.send(1, numbers(0..10)).await;
    let settings = [EXACTLY_ONCE, ("offsets.cleanup.interval.ms", "1")];
    let mut first = bench.sink(&db.url, &settings).await;
    db.until("the first put waits", AT_THE_GATE).await;
    let mut second = bench.sink(&db.url, &settings).await;
    taken_away(&bench).await;
    until(&second, "10 accepted", |s| accepted(s) == 10).await;
    // Further records, so that the start offset that is told moves on, and the sink looks at it.
    let mut sent = 10;
    let all_forgotten = "SELECT count(*) = 1 FROM _kafka_share_offsets_partitions WHERE start_offset >= 10";
    while !db.client.query_one(all_forgotten, &[]).await.expect("answer").get::<_, bool>(0) {
        assert!(sent < 200, "nothing is forgotten");
        bench.send(1, numbers(sent..sent + 1)).await;
        sent += 1;
        until(&second, "it is accepted", |s| accepted(s) == sent as u64).await;
    }
    let kept = db.number("SELECT count(*) FROM _kafka_share_offsets WHERE \"offset\" < 10").await;
    assert_eq!(kept, 0, "rows of offsets are kept");
    db.client.batch_execute(OPEN).await.expect("open");
    until(&first, "the first is done", |s| !s[0].is_busy()).await;
    assert_eq!(failure(&first.status()), None);
    first.stop(PATIENCE).await;
    second.stop(PATIENCE).await;
    assert_eq!(stored(&db).await, expected(0..sent));
}

async fn drained(bench: &Bench, db: &Database, settings: &[(&str, &str)], records: u64) -> Worker {
    let worker = bench.sink(&db.url, settings).await;
    until(&worker, "all accepted", |s| accepted(s) == records).await;
    worker
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_is_reset_writes_nothing_twice_and_says_where_it_cannot_tell() {
    let Some(db) = Database::new("resets", TABLE).await else { return };
    let bench = Bench::start(1).await;
    bench.send(1, numbers(0..10)).await;
    drained(&bench, &db, &[EXACTLY_ONCE], 10).await.stop(PATIENCE).await;
    let reset = || bench.admin.reset_share_group_offsets("connect-sink", &[TOPIC], OffsetReset::Earliest);
    reset().await.expect("reset");
    // Nothing was forgotten yet: all are known.
    drained(&bench, &db, &[EXACTLY_ONCE], 10).await.stop(PATIENCE).await;
    assert_eq!(stored(&db).await, expected(0..10));
    db.client
        .batch_execute("UPDATE _kafka_share_offsets_partitions SET start_offset = 5; DELETE FROM _kafka_share_offsets")
        .await
        .expect("as if forgotten");
    reset().await.expect("reset");
    let mut worker = bench.sink(&db.url, &[EXACTLY_ONCE, ("task.restart.max", "-1")]).await;
    tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
    let status = worker.status();
    let why = failure(&status).expect("a failed task");
    for word in
        ["in-0@0", "were reset to before offset 5", "SET start_offset = 0 WHERE id = ", "to offset 5, and to no later"]
    {
        assert!(why.contains(word), "{word:?} is missing in: {why}");
    }
    assert_eq!((accepted(&status), status[0].restarts), (0, 0));
    worker.stop(PATIENCE).await;
    assert_eq!(stored(&db).await, expected(0..10));
    // An emptied table: all is written anew.
    let delete = "DELETE FROM \"_kafka_share_offsets_partitions\" WHERE group_id = 'connect-sink'; TRUNCATE \"in\"";
    db.client.batch_execute(delete).await.expect("forget");
    drained(&bench, &db, &[EXACTLY_ONCE], 10).await.stop(PATIENCE).await;
    assert_eq!(stored(&db).await, expected(0..10));
}

/// The group was moved forward past records that were never stored, and back: whichever advice of the error is followed, none of
/// them is lost, and none that is known to be stored is written twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_advice_after_a_reset_loses_no_record() {
    for advice in ["update", "reset"] {
        let Some(db) = Database::new(&format!("advice_{advice}"), TABLE).await else { return };
        let bench = Bench::start(1).await;
        bench.send(1, numbers(0..10)).await;
        drained(&bench, &db, &[EXACTLY_ONCE], 10).await.stop(PATIENCE).await;
        let row = "SELECT id FROM _kafka_share_offsets_partitions";
        let id = db.number(row).await;
        // As if what is before 4 had been forgotten; 7 and later are of before the reset, and known; 4 to 6 were never stored.
        let forgotten = "UPDATE _kafka_share_offsets_partitions SET start_offset = 4; DELETE FROM _kafka_share_offsets WHERE \"offset\" < 7; \
             DELETE FROM \"in\" WHERE n BETWEEN 4 AND 6";
        db.client.batch_execute(forgotten).await.expect("as if forgotten");
        let to = |offset| [(TOPIC, 0, offset)];
        bench.admin.alter_share_group_offsets("connect-sink", &to(2)).await.expect("reset");
        let mut worker = bench.sink(&db.url, &[EXACTLY_ONCE]).await;
        tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
        let status = worker.status();
        let why = failure(&status).expect("a failed task").to_owned();
        worker.stop(PATIENCE).await;
        let update = format!("UPDATE \"_kafka_share_offsets_partitions\" SET start_offset = 0 WHERE id = {id}");
        assert!(why.contains(&update) && why.contains("reset the partition to offset 4"), "{why}");
        let (first, twice) = match advice {
            "update" => {
                db.client.batch_execute(&update).await.expect("the advice");
                (2, vec!["2", "3"])
            }
            _ => {
                bench.admin.alter_share_group_offsets("connect-sink", &to(4)).await.expect("the advice");
                (4, Vec::new())
            }
        };
        drained(&bench, &db, &[EXACTLY_ONCE], 10 - first).await.stop(PATIENCE).await;
        let mut all: Vec<String> = expected(0..10);
        all.extend(twice.into_iter().map(str::to_owned));
        all.sort();
        assert_eq!(stored(&db).await, all, "{advice}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_is_created_again_has_new_records() {
    let Some(db) = Database::new("again", TABLE).await else { return };
    let bench = Bench::start(1).await;
    bench.send(1, numbers(0..10)).await;
    drained(&bench, &db, &[EXACTLY_ONCE], 10).await.stop(PATIENCE).await;
    for (_, outcome) in bench.admin.delete_topics(&[TOPIC]).await.expect("delete") {
        outcome.expect("deleted");
    }
    bench.admin.create_topic(NewTopic::new(TOPIC, 1)).await.expect("topic");
    bench.send(1, numbers(10..20)).await;
    drained(&bench, &db, &[EXACTLY_ONCE], 10).await.stop(PATIENCE).await;
    assert_eq!(stored(&db).await, expected(0..20));
    assert_eq!(db.number("SELECT count(*) FROM _kafka_share_offsets_partitions").await, 2);
}
