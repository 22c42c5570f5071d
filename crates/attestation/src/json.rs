//! JSON (RFC 8259), in the one form that cannot be read in two ways.

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
pub use self::number::is_same;
pub(crate) use self::outline::{Outline, outline};

/// Objects and arrays within one another.
const DEEPEST: usize = 64;

/// Why a text is no JSON that is read, or has no such value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadJson {
    #[error("it is not JSON that can be read in one way alone: {0}")]
    Text(String),
    #[error("there is no value at `{0}`")]
    Missing(String),
    #[error("what is at `{0}` is an object or an array")]
    Compound(String),
}

/// Reads a text, its numbers as 64-bit integers where they are, else as the nearest doubles (IEEE
/// 754), as a browser does, while what is claimed of it is exact ([`value`]); refuses a number
/// that is too large for a double, what is no UTF-8, a key that comes twice, what is too deep, and anything
/// behind the end.
pub fn read(text: &[u8]) -> Result<Value, BadJson> {
    let bad = |error: serde_json::Error| BadJson::Text(error.to_string());
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Strict { deeper: DEEPEST }.deserialize(&mut reader).map_err(bad)?;
    reader.end().map_err(bad)?;
    Ok(value)
}

/// The value that a pointer (RFC 6901) leads to in a text and in what was read of it, as JSON text:
/// a number is the one that is written there, digit by digit, and never rounded.
pub(crate) fn value(text: &[u8], whole: &Value, pointer: &str) -> Result<String, BadJson> {
    match whole.pointer(pointer) {
        None => Err(BadJson::Missing(pointer.to_owned())),
        Some(Value::Object(_) | Value::Array(_)) => Err(BadJson::Compound(pointer.to_owned())),
        Some(Value::Number(_)) => {
            let written = literal(text, pointer).and_then(|text| std::str::from_utf8(text).ok());
            written.map(str::to_owned).ok_or_else(|| BadJson::Missing(pointer.to_owned()))
        }
        Some(value @ (Value::Null | Value::Bool(_) | Value::String(_))) => Ok(value.to_string()),
    }
}

#[derive(Clone, Copy)]
struct Strict {
    deeper: usize,
}

impl Strict {
    fn inner<E: de::Error>(self) -> Result<Self, E> {
        let deeper = self.deeper.checked_sub(1).ok_or_else(|| E::custom("it is too deep"))?;
        Ok(Self { deeper })
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
                return Err(de::Error::custom(format_args!("key {key:?} comes twice")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
