//! How the numbers that are proposed are described.

use crate::values::propose_values;

#[test]
fn the_description_of_a_number_says_what_its_mark_means() {
    for (sample, language, descriptions) in [
        (
            "1,234",
            "en",
            &[
                "Number: 1234, if the comma separates thousands. The text does not show which is meant",
                "Number: 1.234, if the comma is before the decimals. The text does not show which is meant",
            ][..],
        ),
        (
            "1.234 €",
            "de",
            &[
                "Amount in EUR: 1.234, if the point is before the decimals. The text does not show which is meant",
                "Amount in EUR: 1234, if the point separates thousands. The text does not show which is meant",
            ][..],
        ),
        (
            "53",
            "en",
            &["Whole number. If another account has decimals, a point is expected before them"][..],
        ),
        ("$5.50", "en", &["Amount in USD: number with a decimal point"][..]),
    ] {
        let proposals = propose_values(sample, language);
        for description in descriptions {
            let is_there = proposals.iter().any(|one| one.description == *description);
            assert!(is_there, "{sample}: {proposals:?}");
        }
    }
}
