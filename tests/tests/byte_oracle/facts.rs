//! What kafka-clients knows beside the layout of messages: header versions, error codes, defaults.

use std::fs;

use kafka_share_messages::{ApiKey, ErrorCode, Message, RequestHeader, ResponseHeader};
use kafka_share_tests::java::{self, JavaProject};
use kafka_share_tests::specs;
use kafka_share_tests::vectors::Kind;

/// Java's facts of one kind, split into words. `None`: `test` is reported as skipped.
fn facts(test: &str, kind: &str) -> Option<Vec<Vec<String>>> {
    if !java::available(test) {
        return None;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("facts.txt");
    JavaProject::build("oracle").run("oracle.Facts", [out.as_path(), &specs::messages_dir()]);
    let text = fs::read_to_string(out).expect("the facts can be read");
    let lines = text.lines().map(|l| l.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let found: Vec<_> = lines.filter(|words| words[0] == kind).collect();
    assert!(!found.is_empty(), "Java printed no {kind}");
    Some(found)
}

fn number(word: &str) -> i16 {
    word.parse().expect("a 16-bit number")
}

#[test]
fn header_versions_are_those_of_java() {
    let Some(lines) = facts("header_versions_are_those_of_java", "header") else { return };
    for line in lines {
        let [key, version, request, response] = [1, 2, 3, 4].map(|i| number(&line[i]));
        let api = ApiKey(key).info().expect("a known key");
        let ours = (api.request_header_version(version), api.response_header_version(version));
        assert_eq!(ours, (request, response), "{} v{version}", api.name);
    }
}

#[test]
fn error_codes_are_those_of_java() {
    let Some(lines) = facts("error_codes_are_those_of_java", "error") else { return };
    for line in &lines {
        let code = ErrorCode(number(&line[1]));
        let ours = (code.name(), code.is_retriable(), code.needs_metadata());
        assert_eq!(ours, (line[2].as_str(), line[3] == "true", line[4] == "true"), "{code}");
    }
    let known = (i16::MIN..=i16::MAX).filter(|code| ErrorCode(*code).name() != "UNKNOWN").count();
    assert_eq!(known, lines.len(), "codes that Java does not know");
}

/// The client's own tests hold these lists against what its builders know.
#[test]
fn properties_of_clients_are_those_of_java() {
    let data = specs::messages_dir().join("../../crates/client/tests/data");
    for (kind, file) in [
        ("consumer", "java-consumer-properties.txt"),
        ("producer", "java-producer-properties.txt"),
        ("unshared", "java-share-refuses.txt"),
    ] {
        let Some(lines) = facts("properties_of_clients_are_those_of_java", kind) else { return };
        let java: String = lines.iter().map(|words| format!("{}\n", words[1])).collect();
        let ours = fs::read_to_string(data.join(file)).expect("the list can be read");
        assert_eq!(ours, java, "{file}: kafka-clients has another list; it should read:\n{java}");
    }
}

/// An unfilled message in hex; `None` where the version cannot carry it.
fn unfilled<M: Message + Default>(version: i16) -> Option<String> {
    let bytes = M::default().to_bytes(version).ok()?;
    Some(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

macro_rules! unfilled_by_key {
    ($($key:literal $request:ident $response:ident,)*) => {
        fn unfilled_of(kind: Kind, key: i16, version: i16) -> Option<String> {
            use kafka_share_messages as ours;
            match (kind, key) {
                $((Kind::Request, $key) => unfilled::<ours::$request>(version),
                (Kind::Response, $key) => unfilled::<ours::$response>(version),)*
                (Kind::RequestHeader, _) => unfilled::<RequestHeader>(version),
                (Kind::ResponseHeader, _) => unfilled::<ResponseHeader>(version),
                _ => panic!("{kind:?} {key} is missing in apis.rs"),
            }
        }
    };
}

for_each_api!(unfilled_by_key);

#[test]
fn unfilled_messages_have_the_bytes_of_java() {
    let Some(lines) = facts("unfilled_messages_have_the_bytes_of_java", "default") else { return };
    for line in lines {
        let kind: Kind = line[1].parse().expect("a kind");
        let (key, version) = (number(&line[2]), number(&line[3]));
        let java = match line[4].as_str() {
            "refused" => None,
            "-" => Some(String::new()),
            hex => Some(hex.to_owned()),
        };
        assert_eq!(unfilled_of(kind, key, version), java, "{kind:?} {key} v{version}");
    }
}
