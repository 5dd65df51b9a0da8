//! Databases, tables and records that are not as they should be: what is said, and that nothing is acknowledged that is not
//! stored.

use super::common::{Database, Keyed, connect, keyed, tombstone};
use crate::common::{Bench, PATIENCE, accepted, failure, rejected, until};
use kafka_share_connect::{ConnectError, Worker, sinks};
use kafka_share_tests::postgres::Postgres;
use serde_json::json;
use std::net::TcpListener;
use std::time::Duration;

async fn refusal(bench: &Bench, url: &str, more: &[(&str, &str)]) -> ConnectError {
    let mut all = vec![("connector.class", "postgres"), ("connection.url", url)];
    all.extend(more);
    let config = bench.config(&all);
    Worker::start(config, sinks::connector("postgres").expect("sink")).await.expect_err("is refused")
}

fn says(error: &ConnectError, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in: {text}");
    }
    assert!(!text.contains("s3cret") && !format!("{error:?}").contains("s3cret"), "{text}");
}

#[tokio::test]
async fn settings_that_make_no_sense_are_named() {
    let bench = Bench::start(1).await;
    let url = "postgres://u:s3cret@127.0.0.1:1/d";
    for (url, more, words) in [
        ("", &[][..], &["connection.url is missing"][..]),
        ("mysql://h/d", &[], &["connection.url", "postgres://"]),
        ("postgres://u:s3cret@h:port/d", &[], &["connection.url", "cannot be read"]),
        ("postgres:///d", &[], &["connection.url", "no host"]),
        ("postgres://u:s3cret@h/d?sslmode=require", &[], &["connection.url", "sslmode", "TLS"]),
        ("jdbc:postgresql://h/d?user=u&password=x&s3cret", &[], &["connection.url", "JDBC"]),
        (url, &[("insert.mode", "merge")], &["insert.mode=merge", "upsert"]),
        (url, &[("insert.mode", "upsert")], &["insert.mode=upsert", "pk.mode"]),
        (url, &[("pk.fields", "id")], &["pk.fields", "pk.mode"]),
        (url, &[("delete.enabled", "true"), ("pk.mode", "kafka")], &["delete.enabled", "pk.mode=record_key"]),
        (url, &[("pk.mode", "kafka"), ("pk.fields", "a,b")], &["pk.fields", "three"]),
        (url, &[("table.name.format", "a.b.c")], &["table.name.format=a.b.c"]),
        (url, &[("batch.size", "0")], &["batch.size=0"]),
        (url, &[("offsets.table.name", "o_${topic}")], &["offsets.table.name"]),
    ] {
        let error = refusal(&bench, url, more).await;
        says(&error, words);
        assert!(matches!(error, ConnectError::Config(_)), "{error:?}");
    }
}

#[tokio::test]
async fn databases_that_take_nobody_are_named() {
    let Some(db) = Database::new("refusing", "CREATE ROLE locked LOGIN PASSWORD 'right'; CREATE ROLE poor LOGIN").await
    else {
        return;
    };
    // From here on the user "locked" is asked for a password.
    let rules = "COPY (SELECT 'host all locked all scram-sha-256' UNION ALL SELECT 'host all all all trust') TO";
    let file = db.texts("SHOW hba_file").await.remove(0);
    db.client.batch_execute(&format!("{rules} '{file}'; SELECT pg_reload_conf()")).await.expect("rules");
    let bench = Bench::start(1).await;
    let port = TcpListener::bind("127.0.0.1:0").expect("port").local_addr().expect("address").port();
    let error = refusal(&bench, &format!("postgres://u:s3cret@127.0.0.1:{port}/d"), &[]).await;
    says(&error, &["connection.url", &format!("127.0.0.1:{port}/d"), "refused"]);
    assert!(error.is_retriable(), "it may come up: {error:?}");
    let as_locked = db.url.replace("example@", "locked@");
    let mut wrong = refusal(&bench, &as_locked, &[("connection.password", "s3cret")]).await;
    // The rules are read a moment later.
    for _ in 0..100 {
        if wrong.to_string().contains("connection.password") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        wrong = refusal(&bench, &as_locked, &[("connection.password", "s3cret")]).await;
    }
    says(&wrong, &["connection.user, connection.password", "/refusing", "locked"]);
    says(&refusal(&bench, &as_locked, &[]).await, &["connection.password is missing"]);
    says(&refusal(&bench, &db.url.replace("refusing", "nowhere"), &[]).await, &["connection.url", "\"nowhere\""]);
    says(&refusal(&bench, &db.url, &[]).await, &["table in does not exist", "auto.create"]);
    let exactly_once = [("share.delivery.semantics", "exactly-once"), ("table.name.format", "pg_catalog.pg_class")];
    let as_poor = db.url.replace("example@", "poor@");
    says(&refusal(&bench, &as_poor, &exactly_once).await, &["offsets.table.name", "permission denied", "CREATE TABLE"]);
}

/// Records of which none can be stored, and what is said of each.
fn bad_records() -> Vec<(Keyed, Vec<&'static str>)> {
    let of = |value: serde_json::Value| keyed("7", &value.to_string());
    vec![
        (of(json!({"a": "x"})), vec!["field \"a\" is string", "column \"a\"", "integer"]),
        (of(json!({"a": 3_000_000_000_i64})), vec!["field \"a\" is integer", "integer"]),
        (of(json!({"a": 1, "nowhere": 1})), vec!["field \"nowhere\" has no column in table in", "auto.evolve"]),
        (of(json!({"b": "abcd", "a": 1})), vec!["too long", "character varying(3)"]),
        (of(json!({"b": "b"})), vec!["null value in column \"a\"", "23502"]),
        (of(json!({"a": -1})), vec!["violates check constraint", "positive"]),
        (of(json!({"a": 1, "d": "soon"})), vec!["column \"d\" (date)", "soon"]),
        (of(json!([1])), vec!["the value is array", "value.converter=json"]),
        ((None, of(json!({"a": 1})).1), vec!["the key is null", "pk.mode=record_key"]),
        (keyed("{\"other\":1}", "{\"a\":1}"), vec!["the key has no field \"id\"", "pk.fields"]),
        (tombstone("1"), vec!["the value is null", "delete.enabled"]),
    ]
}

const TABLE: &str = "CREATE TABLE \"in\" (id bigint PRIMARY KEY, a int NOT NULL CONSTRAINT positive CHECK (a > 0), b varchar(3), d date)";
const BY_ID: [(&str, &str); 3] = [("pk.mode", "record_key"), ("pk.fields", "id"), ("insert.mode", "upsert")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_record_is_rejected_and_its_neighbours_are_stored() {
    let Some(db) = Database::new("rejecting", TABLE).await else { return };
    let bench = Bench::start(1).await;
    let bad: Vec<Keyed> = bad_records().into_iter().map(|(record, _)| record).collect();
    let count = bad.len();
    let mut records: Vec<Keyed> = Vec::new();
    for (i, bad) in bad.into_iter().enumerate() {
        records.push(keyed(&(100 + i).to_string(), r#"{"a": 1}"#));
        records.push(bad);
    }
    bench.send(1, records).await;
    for semantics in ["at-least-once", "exactly-once"] {
        let settings = [&BY_ID[..], &[("errors.tolerance", "all"), ("share.delivery.semantics", semantics)]].concat();
        let mut worker = bench.sink(&db.url, &settings).await;
        let status = until(&worker, "all done", |s| accepted(s) + rejected(s) == 2 * count as u64).await;
        assert_eq!((accepted(&status), rejected(&status)), (count as u64, count as u64));
        worker.stop(PATIENCE).await;
        assert_eq!(db.number("SELECT count(*) FROM \"in\" WHERE a = 1 AND id >= 100").await, count as i64);
        assert_eq!(db.number("SELECT count(*) FROM \"in\"").await, count as i64);
        // Once more, for the other.
        db.client.batch_execute("TRUNCATE \"in\"").await.expect("empty");
        if semantics == "at-least-once" {
            let earliest = kafka_share::admin::OffsetReset::Earliest;
            bench.admin.reset_share_group_offsets("connect-sink", &["in"], earliest).await.expect("reset");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_record_is_said() {
    let Some(db) = Database::new("saying", TABLE).await else { return };
    let bench = Bench::start(1).await;
    let mut worker = bench.sink(&db.url, &BY_ID).await;
    for (offset, (record, words)) in bad_records().into_iter().enumerate() {
        bench.send(1, [record]).await;
        let status = until(&worker, "a failure", |s| failure(s).is_some()).await;
        let why = failure(&status).expect("why");
        let place = format!("in-0@{offset}");
        for word in words.iter().chain(&[place.as_str()]) {
            assert!(why.contains(word), "{word:?} is missing in: {why}");
        }
        assert_eq!((accepted(&status), db.number("SELECT count(*) FROM \"in\"").await), (0, 0));
        worker.stop(PATIENCE).await;
        // Past it.
        let to = [("in", 0, offset as i64 + 1)];
        bench.admin.alter_share_group_offsets("connect-sink", &to).await.expect("offsets");
        worker = bench.sink(&db.url, &BY_ID).await;
    }
    worker.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_without_the_constraint_or_that_is_dropped_fails_the_task_with_advice() {
    let Some(db) = Database::new("advising", "CREATE TABLE \"in\" (id bigint, a int)").await else { return };
    let bench = Bench::start(1).await;
    bench.send(1, [keyed("1", r#"{"a": 1}"#)]).await;
    let mut worker = bench.sink(&db.url, &BY_ID).await;
    let status = until(&worker, "a failure", |s| failure(s).is_some()).await;
    let why = failure(&status).expect("why").to_owned();
    assert!(why.contains("insert.mode=upsert") && why.contains("unique constraint"), "{why}");
    db.client.batch_execute("ALTER TABLE \"in\" ADD PRIMARY KEY (id)").await.expect("key");
    worker.restart(0).expect("restart");
    until(&worker, "1 accepted", |s| accepted(s) == 1).await;
    // What the sink knows of the table is out of date from here on.
    db.client.batch_execute("ALTER TABLE \"in\" RENAME COLUMN a TO other").await.expect("alter");
    bench.send(1, [keyed("2", r#"{"a": 2}"#)]).await;
    let status = until(&worker, "a failure", |s| failure(s).is_some()).await;
    let why = failure(&status).expect("why").to_owned();
    assert!(why.contains("field \"a\" has no column in table in"), "{why}");
    db.client.batch_execute("DROP TABLE \"in\"").await.expect("drop");
    worker.restart(0).expect("restart");
    let status = until(&worker, "a failure", |s| failure(s).is_some_and(|w| w.contains("does not exist"))).await;
    assert_eq!(accepted(&status), 1);
    worker.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_stops_in_a_put_and_comes_back_has_every_record_once() {
    let Some(mut server) = Postgres::start("a_database_that_stops_in_a_put_and_comes_back_has_every_record_once")
    else {
        return;
    };
    // Writes wait for the test, as long as the server lives.
    let tables = "CREATE TABLE \"in\" (id bigint, a int);
        CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END';
        CREATE TRIGGER gate AFTER INSERT ON \"in\" FOR EACH STATEMENT EXECUTE FUNCTION gate()";
    let mut db = Database::of(&server, tables).await;
    let bench = Bench::start(1).await;
    for (round, semantics) in ["at-least-once", "exactly-once"].into_iter().enumerate() {
        let first = 100 * round;
        db.client.batch_execute("SELECT pg_advisory_lock(42)").await.expect("shut");
        bench.send(1, (first..first + 100).map(|i| keyed(&i.to_string(), r#"{"a": 1}"#))).await;
        let settings = [("pk.mode", "record_key"), ("pk.fields", "id"), ("share.delivery.semantics", semantics)];
        let mut worker = bench.sink(&db.url, &settings).await;
        db.until("a put waits", "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").await;
        server.crash();
        assert_eq!(accepted(&worker.status()), 0);
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.start_again();
        db.client = connect(&db.url).await;
        let status = until(&worker, "100 accepted", |s| accepted(s) == 100).await;
        assert_eq!(failure(&status), None);
        worker.stop(PATIENCE).await;
        let stored = format!("SELECT count(*) * 1000 + count(DISTINCT id) FROM \"in\" WHERE id >= {first}");
        assert_eq!(db.number(&stored).await, 100_100);
    }
}

/// What is acknowledged is on disk, and no session waits for others without end, unless the database says otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_have_limits_and_a_lock_that_others_hold_is_waited_for_again() {
    let limits = "CREATE TABLE \"in\" (id bigint PRIMARY KEY, a int); CREATE TABLE seen (name text, value text);
        ALTER DATABASE limits SET lock_timeout = '50ms'; ALTER DATABASE limits SET synchronous_commit = off;
        CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
            INSERT INTO seen SELECT n, current_setting(n) FROM unnest(ARRAY[''lock_timeout'', ''synchronous_commit'',
                ''idle_in_transaction_session_timeout'']) AS s(n); RETURN NULL; END';
        CREATE TRIGGER look AFTER INSERT ON \"in\" FOR EACH STATEMENT EXECUTE FUNCTION look()";
    let Some(db) = Database::new("limits", limits).await else { return };
    let bench = Bench::start(1).await;
    db.client.batch_execute("BEGIN; LOCK TABLE \"in\" IN ACCESS EXCLUSIVE MODE").await.expect("lock");
    bench.send(1, [keyed("1", r#"{"a": 1}"#)]).await;
    let mut worker = bench.sink(&db.url, &BY_ID).await;
    let retried = |w: &Worker| w.metrics(0).and_then(|m| m.get("total-retries")).unwrap_or(0.0);
    until(&worker, "two tries", |_| retried(&worker) >= 2.0).await;
    assert_eq!((failure(&worker.status()), accepted(&worker.status())), (None, 0));
    db.client.batch_execute("COMMIT").await.expect("unlock");
    until(&worker, "1 accepted", |s| accepted(s) == 1).await;
    worker.stop(PATIENCE).await;
    let seen = db.texts("SELECT DISTINCT name || '=' || value FROM seen ORDER BY 1").await;
    assert_eq!(seen, ["idle_in_transaction_session_timeout=1min", "lock_timeout=50ms", "synchronous_commit=on"]);
}
