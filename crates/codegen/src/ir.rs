//! Intermediate form: specs with versions resolved, types looked up and defaults turned into Rust expressions.

use crate::Error;
use crate::names::snake;
use crate::spec;
use crate::versions::Versions;
use std::collections::BTreeMap;

/// A message ready to be emitted.
#[derive(Debug)]
pub struct Message {
    /// Rust type name.
    pub name: String,
    /// Rust module name.
    pub module: String,
    /// API key, `None` for headers.
    pub key: Option<i16>,
    /// `request`, `response` or `header`.
    pub kind: String,
    /// All versions.
    pub valid: Versions,
    /// Flexible versions.
    pub flexible: Versions,
    /// Whether the last version is unstable.
    pub latest_unstable: bool,
    /// Documentation.
    pub about: String,
    /// The message itself first, then every struct in it.
    pub structs: Vec<Struct>,
}

/// A struct of a message.
#[derive(Debug)]
pub struct Struct {
    /// Rust type name.
    pub name: String,
    /// Documentation.
    pub about: String,
    /// Versions in which it occurs.
    pub versions: Versions,
    /// Its fields in wire order.
    pub fields: Vec<Field>,
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// Name in the spec.
    pub name: String,
    /// Rust name.
    pub rust: String,
    /// Type.
    pub ty: Type,
    /// Versions that carry it, within those of its struct.
    pub versions: Versions,
    /// Versions in which it may be null.
    pub nullable: Versions,
    /// Tag and the versions in which it is tagged.
    pub tag: Option<(u32, Versions)>,
    /// Flexible versions of this field.
    pub flexible: Versions,
    /// Rust expression of the default.
    pub default: String,
    /// Whether it may be dropped silently.
    pub ignorable: bool,
    /// Documentation.
    pub about: String,
}

/// A field's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// A fixed-size primitive: its Rust type, and the name of the reader's and writer's method.
    Fixed(&'static str, &'static str, usize),
    /// A string.
    String,
    /// A byte field.
    Bytes,
    /// Record batches, kept as bytes.
    Records,
    /// A struct by Rust name.
    Struct(String),
    /// An array.
    Array(Box<Type>),
}

impl Type {
    fn parse(text: &str) -> Type {
        if let Some(element) = text.strip_prefix("[]") {
            return Type::Array(Box::new(Type::parse(element)));
        }
        match text {
            "bool" => Type::Fixed("bool", "bool", 1),
            "int8" => Type::Fixed("i8", "i8", 1),
            "int16" => Type::Fixed("i16", "i16", 2),
            "uint16" => Type::Fixed("u16", "u16", 2),
            "int32" => Type::Fixed("i32", "i32", 4),
            "uint32" => Type::Fixed("u32", "u32", 4),
            "int64" => Type::Fixed("i64", "i64", 8),
            "float64" => Type::Fixed("f64", "f64", 8),
            "uuid" => Type::Fixed("Uuid", "uuid", 16),
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "records" => Type::Records,
            other => Type::Struct(other.to_owned()),
        }
    }
}

impl Field {
    /// Whether the Rust type is an `Option`.
    #[must_use]
    pub fn optional(&self) -> bool {
        !self.nullable.is_empty() || self.ty == Type::Records
    }
}

/// Lowers a parsed spec.
///
/// # Errors
/// Anything the generator does not support, by message and field.
pub fn lower(spec: &spec::Message) -> Result<Message, Error> {
    let fail = |e: String| Error::Spec(spec.name.clone(), e);
    let valid = Versions::parse(&spec.valid_versions).map_err(fail)?;
    let flexible = Versions::parse(&spec.flexible_versions).map_err(fail)?;
    let mut lowering = Lowering { flexible, structs: Vec::new(), seen: BTreeMap::new() };
    lowering.add_struct(&spec.name, &spec.about, valid, &spec.fields).map_err(fail)?;
    for common in &spec.common_structs {
        let versions = Versions::parse(&common.versions).map_err(fail)?.and(valid);
        lowering.add_struct(&common.name, &common.about, versions, &common.fields).map_err(fail)?;
    }
    let message = Message {
        module: snake(&spec.name),
        name: spec.name.clone(),
        key: spec.api_key,
        kind: spec.kind.clone(),
        valid,
        flexible: flexible.and(valid),
        latest_unstable: spec.latest_version_unstable,
        about: spec.about.clone(),
        structs: lowering.structs,
    };
    check_types(&message).map_err(fail)?;
    Ok(message)
}

struct Lowering {
    flexible: Versions,
    structs: Vec<Struct>,
    seen: BTreeMap<String, ()>,
}

impl Lowering {
    fn add_struct(
        &mut self,
        name: &str,
        about: &str,
        versions: Versions,
        fields: &[spec::Field],
    ) -> Result<(), String> {
        if self.seen.insert(name.to_owned(), ()).is_some() {
            return Err(format!("struct {name} is defined twice"));
        }
        let index = self.structs.len();
        self.structs.push(Struct { name: name.into(), about: about.into(), versions, fields: Vec::new() });
        for field in fields {
            let lowered = self.field(field, versions).map_err(|e| format!("{}: {e}", field.name))?;
            if lowered.versions.is_empty() {
                continue; // Only in versions that no longer exist.
            }
            if !field.fields.is_empty() {
                let Some(name) = struct_name(&lowered.ty) else { return Err("fields on a type without any".into()) };
                self.add_struct(&name, &field.about, lowered.versions, &field.fields)?;
            }
            self.structs[index].fields.push(lowered);
        }
        Ok(())
    }

    fn field(&self, field: &spec::Field, parent: Versions) -> Result<Field, String> {
        let versions = Versions::parse(&field.versions)?.and(parent);
        let parse = |v: &Option<String>| v.as_deref().map_or(Ok(Versions::NONE), Versions::parse);
        let nullable = parse(&field.nullable_versions)?.and(versions);
        let tagged = parse(&field.tagged_versions)?.and(versions);
        let flexible = match &field.flexible_versions {
            Some(text) => Versions::parse(text)?,
            None => self.flexible,
        };
        let ty = match Type::parse(&field.ty) {
            Type::Fixed("i16", ..) if field.name.ends_with("ErrorCode") => Type::Fixed("ErrorCode", "i16", 2),
            ty => ty,
        };
        let optional = !nullable.is_empty() || ty == Type::Records;
        let tag = match (field.tag, tagged.is_empty()) {
            (Some(tag), false) if tagged == versions && nullable.is_empty() | (ty == Type::String) => {
                Some((tag, tagged))
            }
            (None, true) | (Some(_), true) => None,
            _ => return Err("tagged in some versions only, or nullable and tagged: not supported".into()),
        };
        Ok(Field {
            rust: snake(&field.name),
            name: field.name.clone(),
            default: default(field, &ty, optional)?,
            ty,
            versions,
            nullable,
            tag,
            flexible,
            ignorable: field.ignorable,
            about: field.about.clone(),
        })
    }
}

/// The struct that a type refers to, if any.
#[must_use]
pub fn struct_name(ty: &Type) -> Option<String> {
    match ty {
        Type::Struct(name) => Some(name.clone()),
        Type::Array(element) => struct_name(element),
        _ => None,
    }
}

fn default(field: &spec::Field, ty: &Type, optional: bool) -> Result<String, String> {
    let text = match &field.default {
        Some(serde_json::Value::String(text)) => Some(text.clone()),
        Some(other) => Some(other.to_string()),
        None => None,
    };
    if text.as_deref() == Some("null") {
        return if optional { Ok("None".into()) } else { Err("null default, but never nullable".into()) };
    }
    let value = match (ty, text.as_deref().unwrap_or("")) {
        (Type::Fixed("bool", ..), "" | "false" | "False") => "false".into(),
        (Type::Fixed("bool", ..), "true" | "True") => "true".into(),
        (Type::Fixed("ErrorCode", ..), "") => "ErrorCode::NONE".into(),
        (Type::Fixed("Uuid", ..), "") => "Uuid::ZERO".into(),
        (Type::Fixed("f64", ..), text) => {
            if text.is_empty() {
                "0.0".into()
            } else {
                text.to_owned()
            }
        }
        (Type::Fixed(..), "") => "0".into(),
        (Type::Fixed(..), "-2147483648") => "i32::MIN".into(),
        (Type::Fixed(..), "9223372036854775807") => "i64::MAX".into(),
        (Type::Fixed(..), "0x7fffffff") => "i32::MAX".into(),
        (Type::Fixed(..), number) if number.parse::<i64>().is_ok() => number.to_owned(),
        (Type::String, "") => "Str::default()".into(),
        (Type::String, text) => format!("Str::from_static({text:?})"),
        (Type::Bytes, "") => "Bytes::new()".into(),
        (Type::Records, "") => return Ok("None".into()),
        (Type::Array(_), "") => "Vec::new()".into(),
        (Type::Struct(name), "") => format!("{name}::default()"),
        (_, other) => return Err(format!("default {other:?} not supported")),
    };
    Ok(if optional { format!("Some({value})") } else { value })
}

fn check_types(message: &Message) -> Result<(), String> {
    let names: Vec<_> = message.structs.iter().map(|s| s.name.clone()).collect();
    for field in message.structs.iter().flat_map(|s| &s.fields) {
        if let Some(name) = struct_name(&field.ty).filter(|n| !names.contains(n)) {
            return Err(format!("{}: unknown type {name}", field.name));
        }
    }
    Ok(())
}
