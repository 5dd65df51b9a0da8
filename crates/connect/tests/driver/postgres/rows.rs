//! What becomes of records: inserted, upserted, updated, deleted; types with schemas and without.

use super::common::{Database, Keyed, keyed, tombstone};
use crate::common::{Bench, PATIENCE, accepted, rejected, until};
use serde_json::{Value, json};

const BY_KEY: [(&str, &str); 3] = [("pk.mode", "record_key"), ("insert.mode", "upsert"), ("delete.enabled", "true")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upserts_and_tombstones_keep_one_row_per_key() {
    let table = r#"CREATE TABLE "in" (id bigint PRIMARY KEY, "na""me" text, note text DEFAULT 'none')"#;
    let Some(db) = Database::new("upserts", table).await else { return };
    let bench = Bench::start(1).await;
    let name = |id: u32, name: &str| keyed(&json!({ "id": id }).to_string(), &json!({ "na\"me": name }).to_string());
    let records = [
        name(1, "old"),
        name(2, "x'); DROP TABLE \"in\"; --"),
        name(1, "new"),
        keyed(r#"{"id":1}"#, r#"{"note":"later","id":99}"#),
        name(3, "gone"),
        tombstone(r#"{"id":3}"#),
        tombstone(r#"{"id":4}"#),
        name(4, "back"),
        tombstone(r#"{"id":5}"#),
    ];
    let count = records.len() as u64;
    bench.send(1, records).await;
    let mut worker = bench.sink(&db.url, &BY_KEY).await;
    until(&worker, "all accepted", |s| accepted(s) == count).await;
    worker.stop(PATIENCE).await;
    let rows = db.texts(r#"SELECT id || ':' || "na""me" || ':' || note FROM "in" ORDER BY id"#).await;
    assert_eq!(rows, ["1:new:later", "2:x'); DROP TABLE \"in\"; --:none", "4:back:none"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_and_inserts_by_other_keys() {
    let tables = "CREATE TABLE stock (sku text PRIMARY KEY, left_ int, price numeric(8,2));
        INSERT INTO stock VALUES ('a', 1, 1), ('b', 2, 2);
        CREATE SCHEMA other; CREATE TABLE other.in_log (t text, p int, o bigint, sku text, UNIQUE (t, p, o))";
    let Some(db) = Database::new("updates", tables).await else { return };
    let bench = Bench::start(1).await;
    let value = |sku: &str, left: i64| keyed("1", &json!({"sku": sku, "left_": left, "extra": 1}).to_string());
    bench.send(1, [value("a", 10), value("c", 30), value("a", 11)]).await;
    let update = [
        ("table.name.format", "stock"),
        ("insert.mode", "update"),
        ("pk.mode", "record_value"),
        ("pk.fields", "sku"),
        ("fields.whitelist", "left_"),
    ];
    let mut worker = bench.sink(&db.url, &update).await;
    until(&worker, "3 accepted", |s| accepted(s) == 3).await;
    worker.stop(PATIENCE).await;
    let rows = db.texts("SELECT sku || left_ || ':' || price FROM stock ORDER BY sku").await;
    assert_eq!(rows, ["a11:1.00", "b2:2.00"]);

    bench.send(1, (0..7).map(|i| value("d", i))).await;
    let log = [
        ("table.name.format", "other.${topic}_log"),
        ("pk.mode", "kafka"),
        ("pk.fields", "t,p,o"),
        ("insert.mode", "upsert"),
        ("fields.whitelist", "sku"),
        ("batch.size", "2"),
        (
            "connection.url",
            &format!("jdbc:postgresql://{}?user=example&ssl=false", &db.url["postgres://example@".len()..]),
        ),
    ];
    let mut worker = bench.sink(&db.url, &log).await;
    until(&worker, "7 accepted", |s| accepted(s) == 7).await;
    worker.stop(PATIENCE).await;
    let rows = db.texts("SELECT t || p || ':' || o || sku FROM other.in_log ORDER BY o").await;
    assert_eq!(rows, (3..10).map(|o| format!("in0:{o}d")).collect::<Vec<_>>());
}

/// A struct of all types.
fn typed(fields: &[(&str, Value, Value)]) -> Keyed {
    let schema: Vec<Value> = fields
        .iter()
        .map(|(name, schema, _)| {
            let mut schema = schema.clone();
            schema["field"] = json!(name);
            schema
        })
        .collect();
    let payload: serde_json::Map<String, Value> =
        fields.iter().map(|(name, _, value)| ((*name).to_owned(), value.clone())).collect();
    let value = json!({"schema": {"type": "struct", "fields": schema}, "payload": payload});
    keyed(r#"{"schema":{"type":"int64"},"payload":7}"#, &value.to_string())
}

fn logical(kind: &str, name: &str) -> Value {
    json!({"type": kind, "name": format!("org.apache.kafka.connect.data.{name}"), "optional": true})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_created_and_widened_from_schemas() {
    let Some(db) = Database::new("created", "").await else { return };
    let bench = Bench::start(1).await;
    let mut money = logical("bytes", "Decimal");
    money["parameters"] = json!({"scale": "2"});
    let mut fields = vec![
        ("flag", json!({"type": "boolean"}), json!(true)),
        ("small", json!({"type": "int16"}), json!(-7)),
        ("real", json!({"type": "double"}), json!(0.1)),
        ("text", json!({"type": "string"}), json!("a\tb")),
        ("raw", json!({"type": "bytes", "optional": true}), json!("AP8=")),
        ("money", money, json!("BNI=")),
        ("at", logical("int64", "Timestamp"), json!(1_709_251_199_999_i64)),
        ("day", logical("int32", "Date"), json!(19_782)),
        ("tags", json!({"type": "array", "items": {"type": "string"}}), json!(["x", "y\"z"])),
        ("more", json!({"type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}}), json!({"k": 1})),
    ];
    let first = typed(&fields);
    fields.push(("new", json!({"type": "string", "optional": true}), json!("column")));
    bench.send(1, [first, typed(&fields)]).await;
    let settings = [
        ("pk.mode", "record_key"),
        ("pk.fields", "id"),
        ("insert.mode", "upsert"),
        ("auto.create", "true"),
        ("auto.evolve", "true"),
        ("key.converter.schemas.enable", "true"),
        ("value.converter.schemas.enable", "true"),
    ];
    let mut worker = bench.sink(&db.url, &settings).await;
    until(&worker, "2 accepted", |s| accepted(s) == 2).await;
    worker.stop(PATIENCE).await;
    let types = "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
        FROM pg_attribute WHERE attrelid = '\"in\"'::regclass AND attnum > 0";
    let expected = "id bigint, flag boolean, small smallint, real double precision, text text, raw bytea, money numeric, \
        at timestamp without time zone, day date, tags text[], more jsonb, new text";
    assert_eq!(db.texts(types).await, [expected]);
    let row = r#"SELECT jsonb_pretty(to_jsonb(t))::jsonb::text FROM "in" t"#;
    let row: Value = serde_json::from_str(&db.texts(row).await[0]).expect("JSON");
    let expected = json!({"id": 7, "flag": true, "small": -7, "real": 0.1, "text": "a\tb", "raw": "\\x00ff", "money": 12.34,
        "at": "2024-02-29T23:59:59.999", "day": "2024-02-29", "tags": ["x", "y\"z"], "more": {"k": 1}, "new": "column"});
    assert_eq!(row, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_schemas_the_tables_columns_tell_the_types() {
    let table = "CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE DOMAIN posint AS int CHECK (VALUE > 0);
        CREATE TABLE \"in\" (a posint, b varchar(3), c numeric(9,2), d timestamptz, e uuid, f mood, g jsonb, h int[], i bpchar(3), j date)";
    let Some(db) = Database::new("untyped", table).await else { return };
    let bench = Bench::start(1).await;
    let value = json!({"a": 1, "b": "abc", "c": "12.345", "d": 1_709_251_199_999_i64,
        "e": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "f": "happy", "g": {"x": [null]}, "h": [1, null], "i": "xy", "j": "2024-02-29"});
    bench.send(1, [(None, keyed("", &value.to_string()).1), (None, keyed("", r#"{"a":null}"#).1)]).await;
    let mut worker = bench.sink(&db.url, &[]).await;
    until(&worker, "2 accepted", |s| accepted(s) == 2).await;
    worker.stop(PATIENCE).await;
    let rows =
        db.texts("SELECT concat_ws('|', a, b, c, d AT TIME ZONE 'UTC', e, f, g, h, i, j) FROM \"in\" ORDER BY a").await;
    let expected = "1|abc|12.35|2024-02-29 23:59:59.999|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|happy|{\"x\": [null]}|{1,NULL}|xy |2024-02-29";
    assert_eq!(rows, [expected, ""]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_domain_cuts_nothing_off() {
    let table = "CREATE DOMAIN code AS varchar(3); CREATE DOMAIN inner_code AS code; CREATE DOMAIN few AS int;
        CREATE DOMAIN fewer AS few; CREATE TABLE \"in\" (a inner_code, b fewer)";
    let Some(db) = Database::new("domains", table).await else { return };
    let bench = Bench::start(1).await;
    let values = [r#"{"a":"abcd","b":1}"#, r#"{"a":"abc","b":2}"#];
    bench.send(1, values.map(|value| (None, keyed("", value).1))).await;
    let mut worker = bench.sink(&db.url, &[("errors.tolerance", "all")]).await;
    until(&worker, "1 + 1", |s| accepted(s) == 1 && rejected(s) == 1).await;
    worker.stop(PATIENCE).await;
    assert_eq!(db.texts("SELECT concat_ws('|', a, b) FROM \"in\"").await, ["abc|2"]);
}

/// Keys that are equal to the database and not as texts: the last one of them counts, in one statement and over several.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_keys_that_only_the_database_takes_for_one_the_last_counts() {
    for mode in ["upsert", "update"] {
        let table = r#"CREATE TABLE "in" (id numeric PRIMARY KEY, n int); INSERT INTO "in" VALUES (1, 0), (2, 0)"#;
        let Some(db) = Database::new(&format!("equal_keys_{mode}"), table).await else { return };
        let bench = Bench::start(1).await;
        let row = |id: &str, n: u32| keyed(&format!(r#"{{"id":"{id}"}}"#), &json!({ "n": n }).to_string());
        let records =
            [row("1", 1), row("1.00", 2), row("2.0", 3), row("1", 4), row("2", 5), row("1.0", 6), row("1", 7)];
        bench.send(1, records).await;
        let settings = [("pk.mode", "record_key"), ("insert.mode", mode)];
        let mut worker = bench.sink(&db.url, &settings).await;
        until(&worker, "7 accepted", |s| accepted(s) == 7).await;
        worker.stop(PATIENCE).await;
        let rows = db.texts(r#"SELECT id::int || ':' || n FROM "in" ORDER BY id"#).await;
        assert_eq!(rows, ["1:7", "2:5"], "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletes_and_upserts_of_keys_that_only_the_database_takes_for_one_keep_their_order() {
    let Some(db) = Database::new("equal_deletes", r#"CREATE TABLE "in" (id numeric PRIMARY KEY, n int)"#).await else {
        return;
    };
    let bench = Bench::start(1).await;
    let id = |id: &str| format!(r#"{{"id":"{id}"}}"#);
    let records = [
        keyed(&id("1"), r#"{"n":1}"#),
        tombstone(&id("1.0")),
        keyed(&id("2.0"), r#"{"n":1}"#),
        tombstone(&id("2")),
        keyed(&id("2.00"), r#"{"n":2}"#),
    ];
    bench.send(1, records).await;
    let mut worker = bench.sink(&db.url, &BY_KEY).await;
    until(&worker, "5 accepted", |s| accepted(s) == 5).await;
    worker.stop(PATIENCE).await;
    assert_eq!(db.texts(r#"SELECT id::int || ':' || n FROM "in" ORDER BY id"#).await, ["2:2"]);
}

/// The primary key is where the record is in Kafka, whatever topic a transform has routed it to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_place_in_kafka_is_of_the_topic_that_the_record_is_in() {
    let table = "CREATE TABLE routed (t text, p int, o bigint, a int, PRIMARY KEY (t, p, o))";
    let Some(db) = Database::new("routed", table).await else { return };
    let bench = Bench::start(2).await;
    bench.send(2, (0..4).map(|a| keyed("1", &json!({ "a": a }).to_string()))).await;
    let settings = [
        ("pk.mode", "kafka"),
        ("pk.fields", "t,p,o"),
        ("insert.mode", "upsert"),
        ("transforms", "r"),
        ("transforms.r.type", "org.apache.kafka.connect.transforms.TimestampRouter"),
        ("transforms.r.topic.format", "routed"),
    ];
    let mut worker = bench.sink(&db.url, &settings).await;
    until(&worker, "4 accepted", |s| accepted(s) == 4).await;
    worker.stop(PATIENCE).await;
    let rows = db.texts("SELECT t || p || ':' || o || '=' || a FROM routed ORDER BY p, o").await;
    assert_eq!(rows, ["in0:0=0", "in0:1=2", "in1:0=1", "in1:1=3"]);
}
