//! Compares values by their literal text: numbers as decimals, because no type of a fixed size
//! represents every number.

use serde_json::Value;

use super::read;

/// Returns whether two JSON texts are the same value of a claim: a string, number, boolean or null.
/// Numbers are compared exactly: `1e2` equals `100.0`, but not `100.1`.
#[must_use]
pub fn same_value(one: &str, other: &str) -> bool {
    match (read(one.as_bytes()), read(other.as_bytes())) {
        (Ok(Value::Number(_)), Ok(Value::Number(_))) => {
            let (one, other) = (one.trim_ascii(), other.trim_ascii());
            let decimals = Decimal::read(one).zip(Decimal::read(other));
            decimals.map_or(one == other, |(one, other)| one == other)
        }
        (Ok(Value::Array(_) | Value::Object(_)) | Err(_), _) | (_, Err(_)) => false,
        (Ok(one), Ok(other)) => one == other,
    }
}

/// A normalized decimal number: its digits neither start nor end with a zero, and zero has no
/// digits.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    /// The power of ten by which the digits, as an integer, are multiplied.
    exponent: i64,
}

impl Decimal {
    /// Returns `None` if the exponent has more than 64 bits.
    fn read(number: &str) -> Option<Self> {
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let exponent: i64 = exponent.parse().ok()?;
        let (negative, mantissa) =
            mantissa.strip_prefix('-').map_or((false, mantissa), |mantissa| (true, mantissa));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = [whole, fraction].concat();
        let digits = all.trim_end_matches('0');
        let zeros = i64::try_from(all.len() - digits.len()).ok()?;
        let places = i64::try_from(fraction.len()).ok()?;
        let digits = digits.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        let exponent = exponent.checked_sub(places)?.checked_add(zeros)?;
        Some(Self { negative, digits, exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_exactly() {
        for (one, other) in [
            ("18446744073709551617", "18446744073709551617"),
            ("1", "1.0"),
            ("100", "1e2"),
            ("100", "1.00E+2"),
            ("-0.5", "-5e-1"),
            ("0", "-0.000e7"),
            ("0.1", "0.10"),
            (" 7", "7 "),
            ("1e-99999999999999999999", "1e-99999999999999999999"),
        ] {
            assert!(same_value(one, other) && same_value(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("18446744073709551616", "18446744073709551617"),
            ("9007199254740993", "9007199254740992"),
            ("0.1", "0.10000000000000000001"),
            ("1", "-1"),
            ("10", "1"),
            ("1e2", "1e3"),
            ("1e-99999999999999999999", "2e-99999999999999999999"),
            ("1e-99999999999999999999", "0"),
            ("1e999", "1e999"),
            ("1", "\"1\""),
            ("0", "false"),
        ] {
            assert!(!same_value(one, other) && !same_value(other, one), "{one} {other}");
        }
    }

    #[test]
    fn other_values_are_compared_after_parsing() {
        assert!(same_value(r#""\u0041""#, r#""A""#));
        assert!(same_value("null", "null") && same_value("true", "true"));
        for (one, other) in [
            ("null", "false"),
            ("\"a\"", "\"b\""),
            ("[1]", "[1]"),
            ("{}", "{}"),
            ("", ""),
            ("x", "x"),
        ] {
            assert!(!same_value(one, other), "{one} {other}");
        }
    }
}
