//! JSON (RFC 8259), restricted to unambiguous texts.

mod literal;
mod number;
mod outline;

use std::fmt;

use serde::{
    Deserializer,
    de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

use self::literal::literal;
pub use self::number::same_value;
pub(crate) use self::outline::{Outline, outline};

/// Maximum nesting of objects and arrays.
const MAX_DEPTH: usize = 64;

/// Why a JSON text is refused, or does not have the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    #[error("it is not unambiguous JSON: {0}")]
    Text(String),
    #[error("there is no value at `{0}`")]
    Missing(String),
    #[error("the value at `{0}` is an object or an array")]
    Compound(String),
}

/// Parses a text. Numbers become 64-bit integers if they fit, else the nearest doubles (IEEE 754),
/// as in a browser; claimed values are exact ([`value`]). Refuses numbers that are too large for a
/// double, invalid UTF-8, duplicate keys, excessive nesting, and bytes after the end.
pub fn read(text: &[u8]) -> Result<Value, JsonError> {
    let bad = |error: serde_json::Error| JsonError::Text(error.to_string());
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Strict { remaining_depth: MAX_DEPTH }.deserialize(&mut reader).map_err(bad)?;
    reader.end().map_err(bad)?;
    Ok(value)
}

/// Returns the value at a pointer (RFC 6901) as JSON text, from a text and its parsed value: a
/// number keeps its digits and is never rounded.
pub(crate) fn value(text: &[u8], whole: &Value, pointer: &str) -> Result<String, JsonError> {
    match whole.pointer(pointer) {
        None => Err(JsonError::Missing(pointer.to_owned())),
        Some(Value::Object(_) | Value::Array(_)) => Err(JsonError::Compound(pointer.to_owned())),
        Some(Value::Number(_)) => {
            let written = literal(text, pointer).and_then(|text| std::str::from_utf8(text).ok());
            written.map(str::to_owned).ok_or_else(|| JsonError::Missing(pointer.to_owned()))
        }
        Some(value @ (Value::Null | Value::Bool(_) | Value::String(_))) => Ok(value.to_string()),
    }
}

#[derive(Clone, Copy)]
struct Strict {
    remaining_depth: usize,
}

impl Strict {
    fn inner<E: de::Error>(self) -> Result<Self, E> {
        let remaining_depth = self
            .remaining_depth
            .checked_sub(1)
            .ok_or_else(|| E::custom("it is nested too deeply"))?;
        Ok(Self { remaining_depth })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number is too large"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut list = vec![];
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(inner)?;
            if object.contains_key(&key) {
                return Err(de::Error::custom(format_args!("key {key:?} occurs twice")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
