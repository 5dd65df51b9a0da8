//! Emit: Rust text for messages, the API table, the dispatcher and the error codes.

pub mod decode;
pub mod encode;
pub mod errors;
pub mod table;
pub mod types;

use crate::Error;
use crate::ir::Message;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The module of one message.
#[must_use]
pub fn message(message: &Message) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "//! {} (generated from protocol-specs; do not edit).\n", message.name);
    out.push_str("use crate::{ErrorCode, Message, Request};\nuse bytes::Bytes;\nuse kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Uuid, Writer};\n\n");
    for item in &message.structs {
        types::declare(&mut out, message, item);
        decode::emit(&mut out, message, item);
        encode::emit(&mut out, message, item);
    }
    types::message_impl(&mut out, message);
    drop_unused_imports(out, message.kind == "request")
}

/// Not every message uses every import.
fn drop_unused_imports(mut out: String, request: bool) -> String {
    let body = out.split_once("Writer};").map(|(_, body)| body.to_owned()).unwrap_or_default();
    let code: String = body.lines().filter(|line| !line.trim_start().starts_with("///")).collect();
    for import in ["ErrorKind", "Str", "TaggedFields", "Uuid"] {
        if !has_word(&code, import) {
            out = out.replacen(&format!("{import}, "), "", 1);
        }
    }
    if !has_word(&code, "Bytes") {
        out = out.replacen("use bytes::Bytes;\n", "", 1);
    }
    let own = [("ErrorCode", has_word(&code, "ErrorCode")), ("Message", true), ("Request", request)];
    let own: Vec<&str> = own.iter().filter(|(_, used)| *used).map(|(name, _)| *name).collect();
    out = out.replacen("{ErrorCode, Message, Request}", &format!("{{{}}}", own.join(", ")), 1);
    out
}

/// Whether `word` stands in `text` as a whole word.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word)
}

/// Formats generated text with `rustfmt`.
///
/// # Errors
/// Where `rustfmt` is missing or refuses the text.
pub fn format(text: &str) -> Result<String, Error> {
    let fail = |e: std::io::Error| Error::Format(e.to_string());
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--config", "max_width=120,use_small_heuristics=Max"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(fail)?;
    let mut stdin = child.stdin.take().ok_or_else(|| Error::Format("no standard input".into()))?;
    let text = text.to_owned();
    let feeder = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().map_err(fail)?;
    feeder.join().map_err(|_| Error::Format("writer failed".into()))?.map_err(fail)?;
    if !output.status.success() {
        return Err(Error::Format(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    String::from_utf8(output.stdout).map_err(|e| Error::Format(e.to_string()))
}
