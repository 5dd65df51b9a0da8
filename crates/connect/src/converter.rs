//! From bytes to data: `bytes`, `string` and `json`, also under the names of Connect's own classes.

use crate::{ConnectError, Data, Properties};
use bytes::Bytes;

/// How keys or values are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Converter {
    /// As they are.
    Bytes,
    /// UTF-8 text.
    String,
    /// JSON, schemaless (`schemas.enable=false`).
    Json,
}

impl Converter {
    /// From the setting `name` (`key.converter` or `value.converter`) and its `.schemas.enable`; bytes by default.
    ///
    /// # Errors
    /// Unknown converters, and JSON with schemas, which is not supported yet.
    pub fn from_properties(name: &str, properties: &Properties) -> Result<Self, ConnectError> {
        let Some(class) = properties.get(name) else { return Ok(Converter::Bytes) };
        let converter = match class.as_str() {
            "bytes" | "org.apache.kafka.connect.converters.ByteArrayConverter" => Converter::Bytes,
            "string" | "org.apache.kafka.connect.storage.StringConverter" => Converter::String,
            "json" | "org.apache.kafka.connect.json.JsonConverter" => Converter::Json,
            other => return Err(ConnectError::config(format!("{name}={other}: bytes, string or json is expected"))),
        };
        let schemas = properties.get(&format!("{name}.schemas.enable")).map(String::as_str);
        if converter == Converter::Json && schemas == Some("true") {
            return Err(ConnectError::config(format!("{name}.schemas.enable=true is not supported: set it to false")));
        }
        Ok(converter)
    }

    /// Converts.
    ///
    /// # Errors
    /// Bytes that are not text or not JSON: these will never convert.
    pub fn convert(self, bytes: Option<&[u8]>) -> Result<Data, ConnectError> {
        let Some(bytes) = bytes else { return Ok(Data::Null) };
        match self {
            Converter::Bytes => Ok(Data::Bytes(Bytes::copy_from_slice(bytes))),
            Converter::String => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Data::String(text.to_owned())),
                Err(error) => Err(ConnectError::fatal(format!("not UTF-8: {error}"))),
            },
            Converter::Json => match serde_json::from_slice(bytes) {
                Ok(value) => Ok(Data::Json(value)),
                Err(error) => Err(ConnectError::fatal(format!("not JSON: {error}"))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_or_says_why_not() {
        assert_eq!(Converter::String.convert(Some(b"a")).unwrap(), Data::String("a".into()));
        assert_eq!(Converter::Json.convert(None).unwrap(), Data::Null);
        assert!(!Converter::String.convert(Some(b"\xff")).unwrap_err().is_retriable());
        assert!(Converter::Json.convert(Some(b"{")).unwrap_err().to_string().contains("not JSON"));
        let bad = Properties::from([("value.converter".to_owned(), "avro".to_owned())]);
        assert!(Converter::from_properties("value.converter", &bad).unwrap_err().to_string().contains("avro"));
    }
}
