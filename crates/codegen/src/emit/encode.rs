//! The `write` function of a struct.

use super::decode::flex;
use super::types::has_tags;
use crate::ir::{Field, Message, Struct, Type};
use std::fmt::Write as _;

/// Emits `fn write` and closes the `impl` that `decode::emit` opened.
pub fn emit(out: &mut String, message: &Message, item: &Struct) {
    let mut body = String::new();
    for field in item.fields.iter().filter(|f| f.tag.is_none()) {
        let code = put(field, "w");
        body.push_str(&in_versions(item, field, &code));
    }
    for field in item.fields.iter().filter(|f| f.tag.is_some() && !f.ignorable) {
        if let Some(cond) = field.versions.condition(item.versions) {
            let _ = writeln!(body, "if !({cond}) {{ {} }}", refuse_unless_default(item, field));
        }
    }
    if has_tags(message, item) {
        let section = tag_section(item, message);
        match message.flexible.condition(item.versions) {
            None => body.push_str(&section),
            Some(cond) => _ = writeln!(body, "if {cond} {{ {section} }}"),
        }
    }
    let version = if super::has_word(&body, "version") { "version" } else { "_version" };
    let _ = writeln!(
        out,
        "pub(crate) fn write(&self, w: &mut Writer, {version}: i16) -> Result<()> {{\n{body}Ok(())\n}}\n}}\n"
    );
}

fn in_versions(item: &Struct, field: &Field, code: &str) -> String {
    let Some(cond) = field.versions.condition(item.versions) else { return code.to_owned() };
    if field.ignorable {
        return format!("if {cond} {{ {code} }}\n");
    }
    format!("if {cond} {{ {code} }} else {{ {} }}\n", refuse_unless_default(item, field))
}

fn refuse_unless_default(item: &Struct, field: &Field) -> String {
    format!(
        "if {} {{ return Err(ErrorKind::FieldNotInVersion {{ field: \"{}.{}\", version }}.at(w.len())); }}",
        not_default(field),
        item.name,
        field.name
    )
}

/// A condition that holds where the field differs from its default.
fn not_default(field: &Field) -> String {
    let name = format!("self.{}", field.rust);
    match (&field.ty, field.default.as_str()) {
        (_, "None") => format!("{name}.is_some()"),
        (Type::Array(_), "Vec::new()") | (Type::Bytes, "Bytes::new()") | (Type::String, "Str::default()") => {
            format!("!{name}.is_empty()")
        }
        (Type::Fixed("bool", ..), "false") => name,
        (Type::Fixed("bool", ..), "true") => format!("!{name}"),
        (_, default) => format!("{name} != {default}"),
    }
}

fn tag_section(item: &Struct, message: &Message) -> String {
    let mut code = String::new();
    for field in &item.fields {
        let Some((tag, versions)) = field.tag else { continue };
        let guard =
            versions.condition(message.flexible.and(item.versions)).map_or(String::new(), |c| format!("{c} && "));
        let _ = writeln!(
            code,
            "if {guard}{} {{ let mut field = Writer::new(); let w = &mut field; {} known.push(({tag}, field.into_bytes())); }}",
            not_default(field),
            put(field, "w")
        );
    }
    if code.is_empty() {
        return "self.tagged.write(w, &[])?;\n".into();
    }
    format!("let mut known: Vec<(u32, Bytes)> = Vec::new();\n{code}self.tagged.write(w, &known)?;\n")
}

fn put(field: &Field, w: &str) -> String {
    let flex = flex(field);
    let name = format!("self.{}", field.rust);
    if !field.optional() {
        return plain(&field.ty, &name, &flex, w, false) + "\n";
    }
    let some = plain(&field.ty, "value", &flex, w, true);
    let none = match &field.ty {
        Type::String => format!("{w}.null_string({flex})"),
        Type::Struct(_) => format!("{w}.struct_marker(false)"),
        _ => format!("{w}.null_array({flex})"),
    };
    let none = match field.nullable.condition(field.versions) {
        _ if field.ty == Type::Records && !field.nullable.covers(field.versions) => {
            format!("{w}.array_len(0, {flex})?")
        }
        None => none,
        Some(cond) => format!("if {cond} {{ {none} }} else {{ return Err(ErrorKind::UnexpectedNull.at({w}.len())); }}"),
    };
    let some = if matches!(field.ty, Type::Struct(_)) { format!("{w}.struct_marker(true); {some}") } else { some };
    format!("match &{name} {{ Some(value) => {{ {some} }} None => {{ {none}; }} }}\n")
}

fn plain(ty: &Type, name: &str, flex: &str, w: &str, reference: bool) -> String {
    let by_ref = if reference { name.to_owned() } else { format!("&{name}") };
    match ty {
        Type::Fixed("ErrorCode", method, _) => format!("{w}.{method}({name}.0);"),
        Type::Fixed(_, method, _) => format!("{w}.{method}({}{name});", if reference { "*" } else { "" }),
        Type::String => format!("{w}.string({by_ref}, {flex})?;"),
        Type::Bytes | Type::Records => format!("{w}.bytes({by_ref}, {flex})?;"),
        Type::Struct(_) => format!("{name}.write({w}, version)?;"),
        Type::Array(element) => {
            let each = plain(element, "item", flex, w, true);
            format!("{w}.array_len({name}.len(), {flex})?; for item in {by_ref} {{ {} }}", each)
        }
    }
}
