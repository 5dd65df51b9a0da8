//! The `read` function of a struct.

use super::types::has_tags;
use crate::ir::{Field, Message, Struct, Type};
use crate::versions::Versions;
use std::fmt::Write as _;

/// Emits `impl X { fn read }`.
pub fn emit(out: &mut String, message: &Message, item: &Struct) {
    let mut body = String::new();
    for field in item.fields.iter().filter(|f| f.tag.is_none()) {
        let value = value(message, item, field, "r");
        match field.versions.condition(item.versions) {
            None => _ = writeln!(body, "this.{} = {value};", field.rust),
            Some(cond) => _ = writeln!(body, "if {cond} {{ this.{} = {value}; }}", field.rust),
        }
    }
    if has_tags(message, item) {
        let section = tag_section(message, item);
        match message.flexible.condition(item.versions) {
            None => body.push_str(&section),
            Some(cond) => _ = writeln!(body, "if {cond} {{ {section} }}"),
        }
    }
    let version = if super::has_word(&body, "version") { "version" } else { "_version" };
    let _ = writeln!(
        out,
        "impl {} {{\npub(crate) fn read(r: &mut Reader, {version}: i16) -> Result<Self> {{\nlet mut this = Self::default();\n{body}Ok(this)\n}}\n",
        item.name
    );
}

fn tag_section(message: &Message, item: &Struct) -> String {
    let mut arms = String::new();
    for field in &item.fields {
        let Some((tag, versions)) = field.tag else { continue };
        let guard =
            versions.condition(message.flexible.and(item.versions)).map_or(String::new(), |c| format!(" if {c}"));
        let value = value(message, item, field, "field");
        let _ = writeln!(arms, "{tag}{guard} => this.{} = {value},", field.rust);
    }
    if arms.is_empty() {
        return "this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;\n".into();
    }
    format!(
        "let unknown = TaggedFields::read(r, |tag, field| {{\nmatch tag {{\n{arms}_ => return Ok(false),\n}}\nOk(true)\n}})?;\nthis.tagged = unknown;\n"
    )
}

/// The flexible flag of a field, as an expression.
pub(super) fn flex(field: &Field) -> String {
    if field.flexible.and(field.versions).is_empty() {
        return "false".into();
    }
    field.flexible.condition(field.versions).unwrap_or_else(|| "true".into())
}

fn value(message: &Message, item: &Struct, field: &Field, r: &str) -> String {
    let flex = flex(field);
    if field.ty == Type::Records {
        // Null and empty both mean "no records", whatever the version says about null.
        return format!("{r}.nullable_bytes({flex})?");
    }
    if !field.optional() {
        return plain(message, field.versions, &field.ty, &flex, r) + "?";
    }
    let nullable = nullable(message, field.versions, &field.ty, &flex, r);
    match field.nullable.condition(field.versions) {
        None => nullable,
        Some(cond) => format!(
            "if {cond} {{ {nullable} }} else {{ Some({}?) }}",
            plain(message, item.versions, &field.ty, &flex, r)
        ),
    }
}

fn plain(message: &Message, versions: Versions, ty: &Type, flex: &str, r: &str) -> String {
    match ty {
        Type::Fixed("ErrorCode", method, _) => format!("{r}.{method}().map(ErrorCode)"),
        Type::Fixed(_, method, _) => format!("{r}.{method}()"),
        Type::String => format!("{r}.string({flex})"),
        Type::Bytes | Type::Records => format!("{r}.bytes({flex})"),
        Type::Struct(name) => format!("{name}::read({r}, version)"),
        Type::Array(element) => {
            let min = min_size(message, element, versions);
            format!("{r}.array({flex}, {min}, |r| {})", plain(message, versions, element, flex, "r"))
        }
    }
}

fn nullable(message: &Message, versions: Versions, ty: &Type, flex: &str, r: &str) -> String {
    match ty {
        Type::String => format!("{r}.nullable_string({flex})?"),
        Type::Bytes | Type::Records => format!("{r}.nullable_bytes({flex})?"),
        Type::Struct(name) => {
            format!("if {r}.struct_marker()? {{ Some({name}::read({r}, version)?) }} else {{ None }}")
        }
        Type::Array(element) => {
            let min = min_size(message, element, versions);
            format!("{r}.nullable_array({flex}, {min}, |r| {})?", plain(message, versions, element, flex, "r"))
        }
        Type::Fixed(..) => "compile_error!(\"fixed types are never null\")".into(),
    }
}

/// Fewest bytes that one element takes in any of `versions`.
fn min_size(message: &Message, ty: &Type, versions: Versions) -> usize {
    let range = versions.and(message.valid);
    (range.min..=range.max).map(|v| size_in(message, ty, v)).min().unwrap_or(0)
}

fn size_in(message: &Message, ty: &Type, version: i16) -> usize {
    let flexible = message.flexible.contains(version);
    match ty {
        Type::Fixed(_, _, size) => *size,
        Type::String => {
            if flexible {
                1
            } else {
                2
            }
        }
        Type::Bytes | Type::Records | Type::Array(_) => {
            if flexible {
                1
            } else {
                4
            }
        }
        Type::Struct(name) => {
            let Some(item) = message.structs.iter().find(|s| s.name == *name) else { return 0 };
            let fields = item.fields.iter().filter(|f| f.versions.contains(version) && f.tag.is_none());
            let size = |f: &Field| match (&f.ty, f.nullable.contains(version)) {
                (Type::Struct(_), true) => 1,
                (ty, _) => size_in(message, ty, version),
            };
            fields.map(size).sum::<usize>() + usize::from(flexible)
        }
    }
}
