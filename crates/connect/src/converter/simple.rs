//! Header values as Connect's `SimpleHeaderConverter` writes them.

use crate::Data;
use bytes::Bytes;
use serde_json::Value;

/// Text that is JSON becomes what it stands for, where it would be written the same again (`7` and `[1,2]`, but not `007`,
/// `1e3` or `[1, 2]`, nor numbers of more than 64 bits); a quoted text loses its quotes; any other text stays as it is, times
/// and dates too. What is no text stays bytes.
pub(super) fn read(bytes: &[u8], share: impl FnOnce(&[u8]) -> Bytes) -> Data {
    let Ok(text) = std::str::from_utf8(bytes) else { return Data::Bytes(share(bytes)) };
    let typed = text.starts_with(|c: char| c.is_ascii_digit() || "-{[\"tfn".contains(c));
    match typed.then(|| serde_json::from_str::<Value>(text)) {
        Some(Ok(Value::Null)) => Data::Null,
        Some(Ok(Value::String(inner))) => Data::String(inner),
        Some(Ok(value)) if same(&value, text) => Data::Json(value),
        _ => Data::String(text.to_owned()),
    }
}

fn same(value: &Value, text: &str) -> bool {
    let written = value.to_string();
    written == text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_typed_is_written_the_same_again() {
        let read = |text: &str| read(text.as_bytes(), Bytes::copy_from_slice);
        for (text, value) in [
            ("7", json!(7)),
            ("-3.5", json!(-3.5)),
            ("[1,\"a\"]", json!([1, "a"])),
            ("{\"a\":null}", json!({"a": null})),
            ("18446744073709551615", json!(u64::MAX)),
            ("true", json!(true)),
            ("false", json!(false)),
        ] {
            assert_eq!(read(text), Data::Json(value));
            assert_eq!(read(text).to_bytes().unwrap(), text);
        }
        for text in [
            "",
            "007",
            "1e3",
            "[1, 2]",
            "99999999999999999999",
            "2024-02-29",
            "tea",
            "nope",
            "-",
            "00-4bf9-01",
            "true ",
        ] {
            assert_eq!(read(text), Data::String(text.to_owned()));
        }
        assert_eq!(read("\"a b\""), Data::String("a b".into()));
        assert_eq!(read("null"), Data::Null);
        assert_eq!(super::read(b"\xff", Bytes::copy_from_slice), Data::Bytes(Bytes::from_static(b"\xff")));
    }
}
