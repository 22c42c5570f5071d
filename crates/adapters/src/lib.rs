//! The ports, carried out over real technology. Each module names its own and knows no other.

pub mod diesel;
pub mod http;
pub mod outbound;
pub mod places;
pub mod sandbox;
pub mod seal;
pub mod system;

/// Lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
