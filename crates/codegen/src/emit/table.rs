//! Files about all messages together: the module list, the API table and the dispatcher.

use crate::Error;
use crate::ir::Message;
use crate::names::constant;
use std::fmt::Write as _;

/// `gen/mod.rs`.
#[must_use]
pub fn module_list(messages: &[Message]) -> String {
    let mut out = String::from(
        "//! Generated message types (from protocol-specs; do not edit).\n\nmod api_table;\npub mod dispatch;\nmod error_codes;\n",
    );
    for message in messages {
        let _ = writeln!(out, "pub mod {};", message.module);
    }
    out.push_str("\npub(crate) use api_table::APIS;\npub(crate) use error_codes::ERRORS;\n");
    for message in messages {
        let _ = writeln!(out, "pub use {}::{};", message.module, message.name);
    }
    out
}

fn requests(messages: &[Message]) -> impl Iterator<Item = (i16, &Message)> {
    messages.iter().filter(|m| m.kind == "request").filter_map(|m| m.key.map(|k| (k, m)))
}

/// `gen/api_table.rs`.
///
/// # Errors
/// Two messages with one key, or a request without a response of the same versions.
pub fn api_table(messages: &[Message]) -> Result<String, Error> {
    let mut consts = String::new();
    let mut rows = String::new();
    let mut last = None;
    for (key, request) in requests(messages) {
        let name = request.name.trim_end_matches("Request");
        let fail = |e: &str| Error::Spec(request.name.clone(), e.into());
        if last.replace(key) == Some(key) {
            return Err(fail("its API key is used twice"));
        }
        let response = messages.iter().find(|m| m.name == format!("{name}Response"));
        let response = response.ok_or_else(|| fail("has no response"))?;
        if response.valid != request.valid || response.key != request.key {
            return Err(fail("and its response differ in key or versions"));
        }
        let _ = writeln!(consts, "/// {}\npub const {}: ApiKey = ApiKey({key});", request.about, constant(name));
        let flexible = if request.flexible.is_empty() { "i16::MAX".into() } else { request.flexible.min.to_string() };
        let _ = writeln!(
            rows,
            "ApiInfo {{ key: ApiKey({key}), name: {name:?}, min_version: {}, max_version: {}, flexible_from: {flexible}, latest_unstable: {} }},",
            request.valid.min, request.valid.max, request.latest_unstable
        );
    }
    Ok(format!(
        "//! API keys and their versions (generated from protocol-specs; do not edit).\n\nuse crate::{{ApiInfo, ApiKey}};\n\nimpl ApiKey {{\n{consts}}}\n\n/// In key order.\npub(crate) const APIS: &[ApiInfo] = &[\n{rows}];\n"
    ))
}

/// `gen/dispatch.rs`: decode and encode by key, for fuzzing, oracles and conformance.
#[must_use]
pub fn dispatch(messages: &[Message]) -> String {
    let mut requests_out = String::new();
    let mut responses_out = String::new();
    for (key, request) in requests(messages) {
        let response = request.name.trim_end_matches("Request").to_owned() + "Response";
        let _ = writeln!(requests_out, "{key} => reencode::<super::{}>(version, body),", request.name);
        let _ = writeln!(responses_out, "{key} => reencode::<super::{response}>(version, body),");
    }
    format!(
        "//! Decoding by API key (generated from protocol-specs; do not edit).\n\nuse crate::reencode;\nuse bytes::Bytes;\nuse kafka_share_wire::{{ErrorKind, Result}};\n\n/// Decodes a request body, checks that nothing is left, and encodes it again.\n///\n/// # Errors\n/// Unknown keys or versions, and bodies that are not valid.\npub fn reencode_request(key: i16, version: i16, body: Bytes) -> Result<Vec<u8>> {{\nmatch key {{\n{requests_out}_ => Err(ErrorKind::UnknownApiKey(key).at(0)),\n}}\n}}\n\n/// Decodes a response body, checks that nothing is left, and encodes it again.\n///\n/// # Errors\n/// Unknown keys or versions, and bodies that are not valid.\npub fn reencode_response(key: i16, version: i16, body: Bytes) -> Result<Vec<u8>> {{\nmatch key {{\n{responses_out}_ => Err(ErrorKind::UnknownApiKey(key).at(0)),\n}}\n}}\n"
    )
}
