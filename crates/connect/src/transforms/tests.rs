//! Transforms and predicates as they are configured.

use super::*;
use crate::Data;
use crate::converter::Converter;
use bytes::Bytes;
use serde_json::{Value, json};

const TIME: i64 = 1_709_251_199_999;

fn record(value: Data) -> SinkRecord {
    SinkRecord {
        topic: "orders".into(),
        original_topic: "orders".into(),
        topic_id: kafka_share::Uuid::ZERO,
        partition: 3,
        offset: 42,
        key: Data::String("k".into()),
        value,
        headers: vec![("trace".into(), Data::Bytes(Bytes::from_static(b"1")))],
        timestamp: TIME,
        timestamp_type: kafka_share::TimestampType::CreateTime,
        delivery_count: 1,
    }
}

fn chain(settings: &[(&str, &str)]) -> Result<TransformationChain, ConnectError> {
    let own = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    TransformationChain::from_properties(&own.collect())
}

/// One transform `t`, on a value.
fn one(kind: &str, settings: &[(&str, &str)], value: Data) -> Result<Option<SinkRecord>, ConnectError> {
    let mut all = vec![("transforms".to_owned(), "t".to_owned()), ("transforms.t.type".to_owned(), kind.to_owned())];
    all.extend(settings.iter().map(|(n, v)| (format!("transforms.t.{n}"), (*v).to_owned())));
    TransformationChain::from_properties(&all.into_iter().collect())?.apply(record(value))
}

fn value(kind: &str, settings: &[(&str, &str)], of: Data) -> Data {
    one(kind, settings, of).unwrap().unwrap().value
}

fn plain(json: Value) -> Data {
    Data::Json(json)
}

fn with_schema(fields: Value, payload: Value) -> Data {
    let json = json!({"schema": {"type": "struct", "optional": false, "fields": fields}, "payload": payload});
    Converter::JsonWithSchema.convert(Some(json.to_string().as_bytes())).unwrap()
}

/// Reads again what is written, so that its schema must be of its payload.
fn read_again(data: &Data) -> Value {
    let again = Converter::JsonWithSchema.convert(data.to_bytes().as_deref()).unwrap();
    assert_eq!(again, *data);
    data.json().unwrap().clone()
}

#[test]
fn insert_field() {
    let all = [
        ("topic.field", "t"),
        ("partition.field", "p!"),
        ("offset.field", "o?"),
        ("timestamp.field", "at"),
        ("static.field", "s"),
        ("static.value", "x"),
    ];
    let whole = json!({"a": 1, "t": "orders", "p": 3, "o": 42, "at": TIME, "s": "x"});
    assert_eq!(value("InsertField$Value", &all, plain(json!({"a": 1}))), plain(whole.clone()));
    let fields = json!([{"field": "a", "type": "int32", "optional": false}]);
    let data =
        value("org.apache.kafka.connect.transforms.InsertField$Value", &all, with_schema(fields, json!({"a": 1})));
    assert_eq!(read_again(&data), whole);
    let Data::WithSchema(schema, _) = &data else { panic!("{data:?}") };
    let fields = schema.to_json()["fields"].clone();
    assert_eq!((&fields[2]["optional"], &fields[3]["optional"]), (&json!(false), &json!(true)));
    assert_eq!(fields[4]["name"], "org.apache.kafka.connect.data.Timestamp");
    assert_eq!(value("InsertField$Value", &all, Data::Null), Data::Null);
    let error = one("InsertField$Value", &all, Data::String("x".into())).unwrap_err();
    assert!(!error.is_retriable() && error.to_string().contains("transform t: the value has no fields"), "{error}");
    let twice = with_schema(json!([{"field": "t", "type": "int8"}]), json!({"t": 1}));
    assert!(one("InsertField$Value", &all, twice).unwrap_err().to_string().contains("field t already"));
}

#[test]
fn replace_field() {
    let of = json!({"a": 1, "b": 2, "c": 3});
    let fields = json!(["a", "b", "c"].map(|f| json!({"field": f, "type": "int32", "optional": false})));
    for (settings, after) in [
        (&[("exclude", "b")][..], json!({"a": 1, "c": 3})),
        (&[("include", "a, b"), ("exclude", "b")], json!({"a": 1})),
        (&[("renames", "a:x,c:y")], json!({"x": 1, "b": 2, "y": 3})),
    ] {
        assert_eq!(value("ReplaceField$Value", settings, plain(of.clone())), plain(after.clone()));
        let data = value("ReplaceField$Value", settings, with_schema(fields.clone(), of.clone()));
        assert_eq!(read_again(&data), after);
    }
    let error = one("ReplaceField$Value", &[("renames", "a:b")], with_schema(fields, of)).unwrap_err().to_string();
    assert!(error.contains("named b"), "{error}");
}

#[test]
fn mask_field() {
    let of = json!({"s": "secret", "n": 7, "f": 1.5, "b": true, "l": [1], "z": null, "open": "x"});
    let masked = value("MaskField$Value", &[("fields", "s,n,f,b,l,z,missing")], plain(of.clone()));
    assert_eq!(masked, plain(json!({"s": "", "n": 0, "f": 0.0, "b": false, "l": [], "z": null, "open": "x"})));
    let masked = value("MaskField$Value", &[("fields", "s,n"), ("replacement", "99")], plain(of.clone()));
    assert_eq!((&masked.json().unwrap()["s"], &masked.json().unwrap()["n"]), (&json!("99"), &json!(99)));
    for (field, replacement) in [("n", "many"), ("b", "99")] {
        let error = one("MaskField$Value", &[("fields", field), ("replacement", replacement)], plain(of.clone()));
        assert!(error.unwrap_err().to_string().contains(&format!("field {field} cannot be masked")));
    }
    let fields = json!([{"field": "n", "type": "int8", "optional": false}, {"field": "y", "type": "bytes"}]);
    let data = with_schema(fields, json!({"n": 1, "y": "AQ=="}));
    assert_eq!(read_again(&value("MaskField$Value", &[("fields", "n"), ("replacement", "9")], data.clone()))["n"], 9);
    for (field, replacement) in [("n", "300"), ("y", "9")] {
        assert!(one("MaskField$Value", &[("fields", field), ("replacement", replacement)], data.clone()).is_err());
    }
}

#[test]
fn cast() {
    let spec = [("spec", "a:int8,b:string,c:float64,d:boolean,e:int64,missing:int8")];
    let of = json!({"a": "12", "b": 5, "c": "1.5", "d": 2, "e": 3.9});
    let after = json!({"a": 12, "b": "5", "c": 1.5, "d": true, "e": 3});
    assert_eq!(value("Cast$Value", &spec, plain(of.clone())), plain(after.clone()));
    let fields = json!([
        {"field": "a", "type": "string"}, {"field": "b", "type": "int32", "default": 8}, {"field": "c", "type": "string"},
        {"field": "d", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}, {"field": "e", "type": "double"},
    ]);
    let data = value("Cast$Value", &spec, with_schema(fields, of));
    assert_eq!(read_again(&data), after);
    for (kind, of, after) in [
        ("int32", Data::String(" 7 ".into()), Data::Int32(7)),
        ("string", Data::Int64(-1), Data::String("-1".into())),
        ("boolean", Data::String("TRUE".into()), Data::Boolean(true)),
        ("float32", Data::Boolean(true), Data::Float32(1.0)),
        ("int64", plain(json!("5")), plain(json!(5))),
        ("string", Data::Float32(0.1), Data::String("0.1".into())),
        ("string", Data::Float32(-16_777_216.0), Data::String("-1.6777216E7".into())),
        ("string", Data::Float64(123_456.0), Data::String("123456.0".into())),
        ("string", Data::Float64(0.00125), Data::String("0.00125".into())),
        ("string", Data::Float64(1e-7), Data::String("1.0E-7".into())),
        ("string", Data::Float64(-0.0), Data::String("-0.0".into())),
        ("string", plain(json!(100.5)), plain(json!("100.5"))),
        ("string", Data::Float32(f32::NAN), Data::String("NaN".into())),
        ("string", Data::Float64(f64::NEG_INFINITY), Data::String("-Infinity".into())),
        ("float32", Data::Float64(f64::INFINITY), Data::Float32(f32::INFINITY)),
        ("float64", Data::Float32(0.1), Data::Float64(f64::from(0.1_f32))),
        ("float32", plain(json!(0.1)), plain(json!(0.1))),
        ("int64", Data::Null, Data::Null),
    ] {
        assert_eq!(value("Cast$Value", &[("spec", kind)], of), after, "{kind}");
    }
    for (kind, of) in [
        ("int8", Data::Int32(128)),
        ("int64", Data::Float64(1e19)),
        ("int64", Data::Float64(f64::NAN)),
        ("boolean", Data::Float32(f32::NAN)),
        ("int32", Data::Float32(f32::INFINITY)),
        ("int32", Data::String("x".into())),
        ("string", plain(json!([1]))),
        ("float64", Data::String("inf".into())),
        ("int8", Data::Bytes(Bytes::from_static(b"1"))),
    ] {
        let error = one("Cast$Value", &[("spec", kind)], of.clone()).unwrap_err();
        assert!(!error.is_retriable() && error.to_string().contains("cast"), "{of:?}: {error}");
    }
}

#[test]
fn routes_and_filters_by_predicates() {
    let routed = one("TimestampRouter", &[("topic.format", "${timestamp}_${topic}")], Data::Null).unwrap().unwrap();
    assert_eq!((routed.topic.as_str(), routed.place().as_str()), ("20240229_orders", "orders-3@42"));
    let mut old = record(Data::Null);
    old.timestamp = -1;
    assert!(chain(&[("transforms", "r"), ("transforms.r.type", "TimestampRouter")]).unwrap().apply(old).is_err());
    for (predicate, settings, is) in [
        ("TopicNameMatches", &[("predicates.p.pattern", "ord.*")][..], true),
        ("TopicNameMatches", &[("predicates.p.pattern", "ord|x")], false),
        ("HasHeaderKey", &[("predicates.p.name", "trace")], true),
        ("HasHeaderKey", &[("predicates.p.name", "span")], false),
        ("org.apache.kafka.connect.transforms.predicates.RecordIsTombstone", &[], false),
    ] {
        for negate in [false, true] {
            let mut all = vec![
                ("transforms", "f"),
                ("transforms.f.type", "org.apache.kafka.connect.transforms.Filter"),
                ("transforms.f.predicate", "p"),
                ("transforms.f.negate", if negate { "true" } else { "false" }),
                ("predicates", "p"),
                ("predicates.p.type", predicate),
            ];
            all.extend(settings);
            let left = chain(&all).unwrap().apply(record(plain(json!(1)))).unwrap();
            assert_eq!(left.is_none(), is != negate, "{predicate} {settings:?} {negate}");
        }
    }
}

#[test]
fn transforms_go_one_after_the_other() {
    let chain = chain(&[
        ("transforms", "first, second"),
        ("transforms.first.type", "InsertField$Value"),
        ("transforms.first.static.field", "x"),
        ("transforms.first.static.value", "5"),
        ("transforms.second.type", "Cast$Value"),
        ("transforms.second.spec", "x:int32"),
    ]);
    let after = chain.unwrap().apply(record(plain(json!({})))).unwrap().unwrap();
    assert_eq!(after.value, plain(json!({"x": 5})));
    assert!(TransformationChain::default().is_empty());
}

#[test]
fn wrong_settings_are_named() {
    let t = ("transforms", "t");
    let of = |kind| ("transforms.t.type", kind);
    let p = ("predicates", "p");
    for (settings, words) in [
        (&[t][..], ["transforms.t.type", "missing"]),
        (&[t, of("Flatten$Value")], ["transforms.t.type=Flatten$Value", "InsertField"]),
        (&[t, of("InsertField")], ["transforms.t.type=InsertField", "InsertField$Key"]),
        (&[t, of("InsertField$Value")], ["transforms.t", "topic.field"]),
        (&[t, of("InsertField$Value"), ("transforms.t.static.field", "x")], ["transforms.t.static.value", "missing"]),
        (&[t, of("ReplaceField$Value"), ("transforms.t.renames", "a:b,c")], ["transforms.t.renames=c", "old:new"]),
        (
            &[t, of("ReplaceField$Value"), ("transforms.t.blacklist", "a")],
            ["transforms.t.blacklist", "no such setting"],
        ),
        (&[t, of("MaskField$Key")], ["transforms.t", "fields"]),
        (&[t, of("Cast$Value"), ("transforms.t.spec", "a:int7")], ["transforms.t.spec=int7", "int8"]),
        (&[t, of("Cast$Value"), ("transforms.t.spec", "date")], ["transforms.t.spec=date", "int8"]),
        (&[t, of("TimestampRouter"), ("transforms.t.timestamp.format", "EEE")], ["timestamp.format=EEE", "yMdHmsS"]),
        (&[t, of("Filter"), ("transforms.t.predicate", "q")], ["transforms.t.predicate=q", "predicates"]),
        (&[t, of("Filter"), ("transforms.t.negate", "true")], ["transforms.t.negate", "no predicate"]),
        (&[t, of("Filter"), ("transforms.t.negate", "maybe")], ["transforms.t.negate=maybe", "true or false"]),
        (&[("transforms", "t,t"), of("Filter")], ["transforms=t,t", "twice"]),
        (&[p, ("predicates.p.type", "IsRed")], ["predicates.p.type=IsRed", "HasHeaderKey"]),
        (&[p, ("predicates.p.type", "HasHeaderKey")], ["predicates.p.name", "missing"]),
        (
            &[p, ("predicates.p.type", "TopicNameMatches"), ("predicates.p.pattern", "(")],
            ["predicates.p.pattern=(", "regex"],
        ),
        (
            &[t, of("Cast$Value"), ("transforms.t.spec", "int8"), ("transforms.t.replace.null.with.default", "false")],
            ["replace.null", "true"],
        ),
    ] {
        let error = chain(settings).unwrap_err().to_string();
        assert!(words.iter().all(|w| error.contains(w)), "{settings:?}: {error}");
    }
}
