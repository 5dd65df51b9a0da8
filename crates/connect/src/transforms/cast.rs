//! `Cast`: other types for fields, or for the whole key or value.

use super::fields::{change, pairs};
use super::settings::Settings;
use super::{Side, Transformation};
use crate::record::widened;
use crate::{ConnectError, Data, Schema, SchemaType, SinkRecord};
use serde_json::{Value, json};
use std::sync::Arc;

/// What can be cast to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Int(u32),
    Float32,
    Float64,
    Boolean,
    String,
}

impl Target {
    fn of(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "int8" => Target::Int(8),
            "int16" => Target::Int(16),
            "int32" => Target::Int(32),
            "int64" => Target::Int(64),
            "float32" => Target::Float32,
            "float64" => Target::Float64,
            "boolean" => Target::Boolean,
            "string" => Target::String,
            _ => return None,
        })
    }

    fn kind(self) -> SchemaType {
        match self {
            Target::Int(8) => SchemaType::Int8,
            Target::Int(16) => SchemaType::Int16,
            Target::Int(32) => SchemaType::Int32,
            Target::Int(_) => SchemaType::Int64,
            Target::Float32 => SchemaType::Float32,
            Target::Float64 => SchemaType::Float64,
            Target::Boolean => SchemaType::Boolean,
            Target::String => SchemaType::String,
        }
    }

    /// As Java casts, but that numbers which do not fit are refused: there they become others.
    fn cast(self, value: &Value) -> Result<Value, ConnectError> {
        let text = value.as_str().map(str::trim);
        let cast = match self {
            _ if value.is_null() => Some(Value::Null),
            Target::Int(bits) => self.whole(value, text).filter(|n| fits(*n, bits)).map(|n| json!(n)),
            Target::Float32 | Target::Float64 => {
                let number =
                    value.as_f64().or_else(|| text?.parse().ok()).or_else(|| Some(f64::from(value.as_bool()?)));
                let number = number.map(|f| if self == Target::Float32 { widened(f as f32) } else { f });
                number.filter(|f| f.is_finite()).map(|f| json!(f))
            }
            Target::Boolean => match value {
                Value::Bool(_) => Some(value.clone()),
                Value::Number(n) => Some(json!(n.as_f64() != Some(0.0))),
                Value::String(_) => Some(json!(text.is_some_and(|t| t.eq_ignore_ascii_case("true")))),
                _ => None,
            },
            Target::String => match value {
                Value::String(_) => Some(value.clone()),
                Value::Number(n) if n.is_f64() => n.as_f64().map(|f| json!(java_text(&format!("{f:e}")))),
                Value::Bool(_) | Value::Number(_) => Some(json!(value.to_string())),
                _ => None,
            },
        };
        cast.ok_or_else(|| ConnectError::fatal(format!("{value} cannot be cast to {}", self.kind().name())))
    }

    fn whole(self, value: &Value, text: Option<&str>) -> Option<i64> {
        match value {
            Value::Bool(flag) => Some(i64::from(*flag)),
            Value::Number(n) => n.as_i64().or_else(|| {
                let float = n.as_f64()?.trunc();
                // The bounds of i64 as floats: the upper one is out.
                (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float).then_some(float as i64)
            }),
            _ => text?.parse().ok(),
        }
    }
}

fn fits(n: i64, bits: u32) -> bool {
    let high = n >> (bits - 1);
    high == 0 || high == -1
}

#[derive(Debug)]
pub(super) struct Cast {
    side: Side,
    fields: Vec<(String, Target)>,
    whole: Option<Target>,
}

impl Cast {
    pub(super) fn new(side: Side, settings: &mut Settings<'_>) -> Result<Self, ConnectError> {
        const TYPES: &str = "int8, int16, int32, int64, float32, float64, boolean or string is expected as type";
        let spec = settings.need("spec")?;
        if !spec.contains([':', ',']) {
            let target = Target::of(&spec).ok_or_else(|| settings.wrong("spec", &spec, TYPES))?;
            return Ok(Cast { side, fields: Vec::new(), whole: Some(target) });
        }
        let mut fields = Vec::new();
        for (field, kind) in pairs(&spec).map_err(|part| settings.wrong("spec", &part, "field:type is expected"))? {
            let target = Target::of(&kind).ok_or_else(|| settings.wrong("spec", &kind, TYPES))?;
            fields.push((field, target));
        }
        Ok(Cast { side, fields, whole: None })
    }

    fn fields(&self, record: &mut SinkRecord) -> Result<(), ConnectError> {
        change(self.side, record, |mut fields| {
            for (name, target) in &self.fields {
                if let Some(value) = fields.values.get_mut(name) {
                    *value = target.cast(value).map_err(|e| ConnectError::fatal(format!("field {name}: {e}")))?;
                }
                let schema = fields.schema.as_mut().and_then(|s| s.iter_mut().find(|(n, _)| n == name));
                if let Some((_, schema)) = schema {
                    retype(schema, *target)?;
                }
            }
            Ok(())
        })
    }
}

/// The logical type is gone with the old one.
fn retype(schema: &mut Schema, target: Target) -> Result<(), ConnectError> {
    let default = schema.default.take().map(|d| target.cast(&d)).transpose()?;
    let cast = Schema { optional: schema.optional, default, doc: schema.doc.take(), ..Schema::new(target.kind()) };
    *schema = cast;
    Ok(())
}

fn whole(data: &mut Data, target: Target) -> Result<(), ConnectError> {
    if let Data::WithSchema(schema, value) = data {
        *value = target.cast(value)?;
        return retype(Arc::make_mut(schema), target);
    }
    let value = match &*data {
        Data::Null => return Ok(()),
        Data::Float32(f) if !f.is_finite() => return not_finite(data, f64::from(*f), target),
        Data::Float64(f) if !f.is_finite() => return not_finite(data, *f, target),
        // As in Java, the same value with all its binary digits.
        Data::Float32(f) if target == Target::Float64 => {
            *data = Data::Float64(f64::from(*f));
            return Ok(());
        }
        Data::Bytes(_) => return Err(ConnectError::fatal("bytes cannot be cast")),
        other => other.to_json(),
    };
    let cast = target.cast(&value)?;
    let number = cast.as_i64().unwrap_or_default();
    let float = cast.as_f64().unwrap_or_default();
    *data = match target {
        // JSON has no widths.
        _ if matches!(data, Data::Json(_)) => Data::Json(cast),
        Target::Int(8 | 16) => Data::Int16(number as i16),
        Target::Int(32) => Data::Int32(number as i32),
        Target::Int(_) => Data::Int64(number),
        Target::Float32 => Data::Float32(float as f32),
        Target::Float64 => Data::Float64(float),
        Target::Boolean => Data::Boolean(cast.as_bool().unwrap_or_default()),
        Target::String => Data::String(cast.as_str().unwrap_or_default().to_owned()),
    };
    Ok(())
}

/// JSON has no such numbers.
fn not_finite(data: &mut Data, float: f64, target: Target) -> Result<(), ConnectError> {
    *data = match target {
        Target::Float32 => Data::Float32(float as f32),
        Target::Float64 => Data::Float64(float),
        Target::String if float.is_nan() => Data::String("NaN".into()),
        Target::String => Data::String(if float > 0.0 { "Infinity" } else { "-Infinity" }.into()),
        _ => return Err(ConnectError::fatal(format!("{float} cannot be cast to {}", target.kind().name()))),
    };
    Ok(())
}

/// A float as Java writes it, from digits and exponent (`-1.25e-7`).
fn java_text(scientific: &str) -> String {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |d| ("-", d));
    let digits = digits.replace('.', "");
    let with = |whole: &str, rest: &str| format!("{sign}{whole}.{}", if rest.is_empty() { "0" } else { rest });
    match exponent {
        -3..0 => with("0", &format!("{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1))),
        0..7 => {
            let whole = exponent as usize + 1;
            let padded = format!("{digits:0<whole$}");
            with(&padded[..whole], &padded[whole..])
        }
        _ => format!("{}E{exponent}", with(&digits[..1], &digits[1..])),
    }
}

impl Transformation for Cast {
    fn apply(&self, mut record: SinkRecord) -> Result<Option<SinkRecord>, ConnectError> {
        match self.whole {
            Some(target) => whole(self.side.of(&mut record), target)?,
            None => self.fields(&mut record)?,
        }
        Ok(Some(record))
    }
}
