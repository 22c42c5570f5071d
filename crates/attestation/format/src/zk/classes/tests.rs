//! Tests that the constraints hold for the bytes of a class, and for no others.

use bellpepper_core::{
    boolean::{AllocatedBit, Boolean},
    test_cs::TestConstraintSystem,
};
use spartan2::{provider::T256HyraxEngine, traits::Engine};

use super::{super::ByteClass, Classes};

type Scalar = <T256HyraxEngine as Engine>::Scalar;
type System = TestConstraintSystem<Scalar>;

fn bit(cs: &mut System, name: String, value: bool) -> Boolean {
    use bellpepper_core::ConstraintSystem as _;
    AllocatedBit::alloc(cs.namespace(|| name), Some(value)).unwrap().into()
}

/// Returns whether the constraints hold for a byte with these masks, with or without the two masks
/// for JSON.
fn holds(byte: u8, masks: &[bool]) -> bool {
    let mut cs = System::new();
    let bits: Vec<_> =
        (0..8).map(|at| bit(&mut cs, format!("bit {at}"), byte >> at & 1 == 1)).collect();
    let masks = masks.iter().enumerate();
    let masks: Vec<_> = masks.map(|(at, mask)| bit(&mut cs, format!("mask {at}"), *mask)).collect();
    Classes::of(&bits, &mut masks.iter()).unwrap().enforce(&mut cs).unwrap();
    cs.is_satisfied()
}

/// A byte must belong to each of the required classes.
#[test]
fn constraints_hold_for_the_bytes_of_each_class_and_no_others() {
    let classes = [ByteClass::Printable, ByteClass::Text, ByteClass::Scalar];
    for byte in 0..=u8::MAX {
        for masks in 0..8 {
            let masks = [masks & 1 == 1, masks & 2 == 2, masks & 4 == 4];
            let of_all =
                classes.iter().zip(masks).all(|(class, mask)| !mask || class.contains(byte));
            assert_eq!(holds(byte, &masks), of_all, "{byte:#04x} as {masks:?}");
        }
        for mask in [false, true] {
            let of_all = !mask || ByteClass::Printable.contains(byte);
            assert_eq!(holds(byte, &[mask]), of_all, "{byte:#04x}, of a request only");
        }
    }
}

/// The purpose of the classes: none contains a byte that ends a value.
#[test]
fn no_class_has_what_ends_a_value() {
    let bytes = |class: ByteClass| (0..=u8::MAX).filter(move |byte| class.contains(*byte));
    for class in [ByteClass::Printable, ByteClass::Text, ByteClass::Scalar] {
        assert!(bytes(class).all(|byte| byte >= b' '), "{class:?}");
    }
    assert_eq!(bytes(ByteClass::Printable).count(), 0xe0);
    let text: Vec<_> = bytes(ByteClass::Printable).filter(|byte| !b"\"\\".contains(byte)).collect();
    assert!(bytes(ByteClass::Text).eq(text));
    assert!(
        !bytes(ByteClass::Scalar).any(|byte| b" ,:\"\\{}[]\x7f".contains(&byte) || byte > 0x7f)
    );
    assert!(b"-+.eE0123456789truefalsenull".iter().all(|byte| ByteClass::Scalar.contains(*byte)));
}
