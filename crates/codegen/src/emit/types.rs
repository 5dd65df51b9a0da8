//! Struct declarations, defaults, and the trait implementations of a message.

use crate::ir::{Field, Message, Struct, Type};
use std::fmt::Write as _;

/// The Rust type of a field.
#[must_use]
pub fn rust_type(field: &Field) -> String {
    let base = base_type(&field.ty);
    if field.optional() { format!("Option<{base}>") } else { base }
}

fn base_type(ty: &Type) -> String {
    match ty {
        Type::Fixed(name, ..) => (*name).into(),
        Type::String => "Str".into(),
        Type::Bytes | Type::Records => "Bytes".into(),
        Type::Struct(name) => name.clone(),
        Type::Array(element) => format!("Vec<{}>", base_type(element)),
    }
}

/// Whether the struct has a tagged section in some version.
#[must_use]
pub fn has_tags(message: &Message, item: &Struct) -> bool {
    !message.flexible.and(item.versions).is_empty()
}

/// Declaration and `Default`.
pub fn declare(out: &mut String, message: &Message, item: &Struct) {
    let about = if item.about.is_empty() { format!("Part of [`{}`].", message.name) } else { item.about.clone() };
    let _ = writeln!(out, "/// {about}\n///\n/// Versions {}.", item.versions.text());
    let _ = writeln!(out, "#[derive(Debug, Clone, PartialEq)]\npub struct {} {{", item.name);
    for field in &item.fields {
        let _ = writeln!(out, "/// {}\npub {}: {},", field_doc(field, message), field.rust, rust_type(field));
    }
    let tags = has_tags(message, item);
    if tags {
        out.push_str("/// Tagged fields that this build does not know.\npub tagged: TaggedFields,\n");
    }
    let _ = writeln!(out, "}}\n\nimpl Default for {} {{\nfn default() -> Self {{\nSelf {{", item.name);
    for field in &item.fields {
        let _ = writeln!(out, "{}: {},", field.rust, field.default);
    }
    if tags {
        out.push_str("tagged: TaggedFields::new(),\n");
    }
    out.push_str("}\n}\n}\n\n");
}

fn field_doc(field: &Field, message: &Message) -> String {
    let mut doc = if field.about.is_empty() { format!("`{}`", field.name) } else { field.about.clone() };
    let mut facts = Vec::new();
    if !field.versions.covers(message.valid) {
        facts.push(format!("versions {}", field.versions.text()));
    }
    if let Some((tag, _)) = field.tag {
        facts.push(format!("tag {tag}"));
    }
    if !field.nullable.is_empty() && !field.nullable.covers(field.versions) {
        facts.push(format!("null only in versions {}", field.nullable.text()));
    }
    if !facts.is_empty() {
        let _ = write!(doc, " ({})", facts.join(", "));
    }
    doc
}

/// `Message` and, for requests, `Request`.
pub fn message_impl(out: &mut String, message: &Message) {
    let name = &message.name;
    let flexible_from = if message.flexible.is_empty() { "i16::MAX".into() } else { message.flexible.min.to_string() };
    let throttled = message.structs[0].fields.iter().any(|f| f.name == "ThrottleTimeMs");
    let throttle = if throttled { "\nfn throttle_time_ms(&self) -> i32 {\nself.throttle_time_ms\n}\n" } else { "" };
    let _ = writeln!(
        out,
        "impl Message for {name} {{\nconst NAME: &'static str = {name:?};\nconst MIN_VERSION: i16 = {};\nconst MAX_VERSION: i16 = {};\nconst FLEXIBLE_FROM: i16 = {flexible_from};\n\nfn decode(r: &mut Reader, version: i16) -> Result<Self> {{\nSelf::check_version(version)?;\nSelf::read(r, version)\n}}\n\nfn encode(&self, w: &mut Writer, version: i16) -> Result<()> {{\nSelf::check_version(version)?;\nself.write(w, version)\n}}\n{throttle}}}",
        message.valid.min, message.valid.max
    );
    if let (Some(key), "request") = (message.key, message.kind.as_str()) {
        let response = message.name.trim_end_matches("Request").to_owned() + "Response";
        let module = crate::names::snake(&response);
        let _ = writeln!(
            out,
            "\nimpl Request for {name} {{\ntype Response = super::{module}::{response};\nconst KEY: crate::ApiKey = crate::ApiKey({key});\n}}"
        );
    }
}
