//! The checked-in messages are what the specs say: generates in memory and compares file by file.

use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn checked_in_messages_match_the_specs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let wanted = kafka_share_codegen::generate(&root.join("protocol-specs")).expect("specs generate");
    let dir = root.join("crates/messages/src/gen");
    let found: BTreeMap<String, String> = std::fs::read_dir(&dir)
        .expect("generated folder")
        .map(|entry| entry.expect("entry").path())
        .map(|path| {
            let name = path.file_name().expect("name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("generated file"))
        })
        .collect();
    let advice = "run `cargo run -p kafka-share-codegen` and commit the result";
    assert_eq!(wanted.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>(), "{advice}");
    for (name, text) in &wanted {
        assert!(found[name] == *text, "{name} is not what the specs say: {advice}");
    }
}
