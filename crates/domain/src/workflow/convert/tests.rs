//! Converters on texts as pages write them.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn convert(converter: &Value, text: &str) -> Option<Value> {
    let converter: Converter = serde_json::from_value(converter.clone()).unwrap();
    assert_eq!(converter.error(), None, "{converter:?}");
    converter.apply(&json!(text))
}

fn date(pattern: &str, language: &str, text: &str) -> Option<String> {
    let converter = json!({ "date": { "pattern": pattern, "language": language } });
    convert(&converter, text).map(|date| date.as_str().unwrap().to_owned())
}

#[test]
fn amounts_are_read_beside_words_that_are_no_sign() {
    for (mark, text, expected) in [
        (",", "49,99 zł od osoby", json!(49.99)),
        (",", "250 Kč od Petra", json!(250)),
        (",", "3,20 € S-Bahn", json!(3.2)),
        (",", "12,50 € S. Müller", json!(12.5)),
        (",", "15,00 € Dr. Müller", json!(15)),
        (",", "1.234,50 € soll bezahlt werden", json!(1234.5)),
        (".", "$1.75 D lens", json!(1.75)),
        (",", "Bananen Bio 1,99 €", json!(1.99)),
    ] {
        let converter = json!({ "number": { "decimalMark": mark } });
        assert_eq!(convert(&converter, text), Some(expected), "{text:?}");
    }
}

#[test]
fn numbers_are_read_as_pages_write_them() {
    let number = |mark, text| convert(&json!({ "number": { "decimalMark": mark } }), text);
    for (mark, text, expected) in [
        (".", "1,234.50", json!(1234.5)),
        (",", "EUR 1.234,50", json!(1234.5)),
        (".", "7 edits", json!(7)),
        (",", "1\u{a0}234\u{a0}567", json!(1_234_567)),
        (",", "1\u{202f}234,5 €", json!(1234.5)),
        (".", "CHF 1\u{2019}234.50", json!(1234.5)),
        (".", "₹12,34,567.00", json!(1_234_567)),
        (",", "0,00 €", json!(0)),
        (".", "-$5.25", json!(-5.25)),
        (".", "$ -5.25", json!(-5.25)),
        (",", "\u{2212}12", json!(-12)),
        (",", "1.234,50- EUR", json!(-1234.5)),
        (",", "1.234", json!(1234)),
        (".", "1.234", json!(1.234)),
        (".", "007", json!(7)),
        (".", "98 %", json!(98)),
        (",", "٢٠٢٦", json!(2026)),
        (".", "123456789012345", json!(123_456_789_012_345_i64)),
        (".", "(5)", json!(5)),
        (".", "Reviews (1,234)", json!(1234)),
        (".", "Discount (12.5%)", json!(12.5)),
        (".", "5 negative reviews", json!(5)),
        (".", "5.5 s", json!(5.5)),
        (".", "5 S", json!(5)),
        (".", "5.00 S$", json!(5)),
        (",", "5,00 H", json!(5)),
        (".", "Bio 5", json!(5)),
        (".", "about 3,000 results", json!(3000)),
        (".", "E-Mails: 7", json!(7)),
        (".", "5-star hotel", json!(5)),
        (".", "Results - page 5", json!(5)),
        (",", "5,– €", json!(5)),
        (".", "CHF 5.\u{2013}", json!(5)),
        (".", "₹500/-", json!(500)),
        (".", "Rs.500", json!(500)),
        (".", ".75", json!(0.75)),
        (".", "$.75", json!(0.75)),
        (".", "+.75", json!(0.75)),
        (".", "5 L", json!(5)),
        (".", "5 mm", json!(5)),
    ] {
        assert_eq!(number(mark, text), Some(expected), "{text:?}");
    }
    for (mark, text) in [
        (".", ""),
        (".", "none"),
        (",", "1.5"),
        (".", "1,5"),
        (".", "1,23,4"),
        (".", "0,123"),
        (",", "0.123"),
        (",", "1.234.56"),
        (".", "1,234'567"),
        (".", "3 of 100"),
        (".", "2026-11-23"),
        (".", "1.2K"),
        (",", "1,2 Mio. Follower"),
        (".", "1.2.3"),
        (".", "A5"),
        (".", "5th"),
        (".", "1234567890123456"),
        (".", "192.168.0.1"),
        (".", "..75"),
        (".", ".1,234"),
        (",", ".75"),
        (",", ",75"),
        (".", "5 ½"),
        (".", "99+"),
        (".", "$99 +"),
        (".", "< 5"),
        (".", "±5"),
    ] {
        assert_eq!(number(mark, text), None, "{text:?}");
    }
    assert_eq!(Converter::Trim.apply(&json!(5)), Some(json!("5")));
    assert_eq!(Converter::Trim.apply(&json!([5])), None);
}

#[test]
fn numbers_have_the_sign_that_pages_write() {
    let number = |mark, text| convert(&json!({ "number": { "decimalMark": mark } }), text);
    for (mark, text, expected) in [
        (",", "-R$ 50,00", json!(-50)),
        (".", "-US$5.25", json!(-5.25)),
        (".", "-EUR 5", json!(-5)),
        (",", "-F\u{202f}CFA 5", json!(-5)),
        (".", "-Rs.500", json!(-500)),
        (".", "-.75", json!(-0.75)),
        (".", "CHF-5.00", json!(-5)),
        (".", "$-5", json!(-5)),
        (".", "$ - 5.00", json!(-5)),
        (".", "- 5.00", json!(-5)),
        (".", "- 5", json!(-5)),
        (",", "\u{2013}5,00 €", json!(-5)),
        (",", "\u{2013}€ 5,00", json!(-5)),
        (",", "\u{200e}\u{2212}5,00 €", json!(-5)),
        (",", "1.234,50-", json!(-1234.5)),
        (",", "1.234,50 -", json!(-1234.5)),
        (",", "1.234,50 €-", json!(-1234.5)),
        (",", "Saldo: -12,50 €", json!(-12.5)),
        (".", "Balance -12.50", json!(-12.5)),
        (".", "E-Mails - today -5", json!(-5)),
        (".", "(-5.00)", json!(-5)),
    ] {
        assert_eq!(number(mark, text), Some(expected), "{text:?}");
    }
    for (mark, text) in [
        (".", "Balance - 12.50"),
        (".", "Balance \u{2013} 12.50"),
        (".", "Balance \u{2014} 12.50"),
        (".", "Balance (EUR) - 12.50"),
        (".", "\u{2014}5"),
        (".", "- 5 apples"),
        (".", "--5"),
        (".", "Covid-19"),
        (".", "BUG-123"),
        (".", "COP-26"),
        (".", "-XYZQ 5"),
        (".", "-5.00-"),
        (".", "2-"),
        (".", "5 - Great"),
        (",", "1.234,50\u{2013}"),
        (",", "50-EUR-Schein"),
        (",", "10-€-Gutschein"),
        (",", "5,00 € - Rabatt"),
        (".", "($1,234.50)"),
        (",", "(5,00 €)"),
        (".", "$(1,234)"),
        (".", "(1,234) EUR"),
        (".", "(12.50)"),
        (".", "(1,234)"),
        (".", "( 1,234 )"),
        (".", "(12.5%)"),
        (".", "minus 5"),
        (".", "Minus $5.00"),
        (",", "moins 5,00 €"),
        (",", "menos 5"),
        (".", "negative 5"),
        (".", "5.00 minus"),
        (",", "5,00 S"),
        (",", "5,00 S €"),
        (",", "5,00 € S"),
        (",", "1.234 Soll"),
        (".", "5.00 DR"),
        (".", "5.00 DR."),
        (".", "$5.00 OD"),
        (".", "USD 5.00 Debit"),
        (",", "5,00 D"),
    ] {
        assert_eq!(number(mark, text), None, "{text:?}");
    }
}

#[test]
fn numbers_with_a_multiplier_are_missing() {
    for text in [
        "1,2 Milliarden",
        "2 milliards",
        "2 Mds €",
        "3 miljoen",
        "1 millón",
        "1 millo\u{301}n",
        "2 mil millones",
        "2 billones",
        "3 Billionen",
        "1,5 bilhões",
        "2 milioni",
        "5 tysięcy",
        "5 TYS.",
        "5 MİLYON",
        "٥ ملايين",
        "5 million",
        "5-million",
        "5 (million)",
        "5 trillion",
        "5 lakh",
        "₹5 Crore",
        "₹5 L",
        "₹5 Cr",
        "५ लाख",
        "5 करोड़",
        "5 万",
        "$5 MM",
        "5 T€",
        "5 TEUR",
        "5 € Mio.",
        "5 bio",
        "1,2 Bio. €",
        "Mio. EUR 5,2",
        "CHF Mio. 5,2",
        "Mrd. € 5",
        "Bio. € 5",
        "5 USD million",
        "2 dozen",
    ] {
        assert_eq!(parse_number(text, DecimalMark::Comma), None, "{text:?}");
    }
}

#[test]
fn dates_are_read_by_their_pattern() {
    for (pattern, language, text, expected) in [
        ("HH:mm, d MMMM y", "en", "20:55, 23 November 2026", "2026-11-23T20:55:00"),
        ("d. MMMM y", "de", "1. März 2019", "2019-03-01"),
        ("d. MMM y", "de", "1. Mrz. 2019", "2019-03-01"),
        ("MMM d, y", "en", "Sept. 5, 2020", "2020-09-05"),
        ("EEEE, d 'de' MMMM 'de' y", "es", "lunes, 2 de marzo de 2026", "2026-03-02"),
        ("d MMMM y", "fr", "14 juil. 2024", "2024-07-14"),
        ("d MMMM y", "pl", "23 listopada 2026", "2026-11-23"),
        ("d MMMM y", "ar", "٢٣ نوفمبر ٢٠٢٦", "2026-11-23"),
        ("d MMMM y", "tr", "5 Ağustos 2021", "2021-08-05"),
        ("dd/MM/yy", "en", "05/11/69", "2069-11-05"),
        ("dd/MM/yy", "en", "05/11/70", "1970-11-05"),
        ("'Member since' MMMM y", "en", "member since  November\u{a0}2019", "2019-11"),
        ("y", "en", "2019", "2019"),
        ("M/d/y, h:mm a", "en", "2/9/2026, 12:05 a.m.", "2026-02-09T00:05:00"),
        ("M/d/y h:mm:ss a", "en", "2/9/2026 1:05:09 PM", "2026-02-09T13:05:09"),
        ("y-MM-dd'T'HH:mm:ssXXX", "en", "2026-02-09T10:11:12+02:00", "2026-02-09T10:11:12+02:00"),
        ("y-MM-dd HH:mm XXX", "en", "2026-02-09 10:11 Z", "2026-02-09T10:11:00Z"),
        ("y-MM-dd'T'HH:mm:ssXXX", "en", "2026-02-09T10:11:12.951454Z", "2026-02-09T10:11:12Z"),
        ("HH:mm:ss, d.M.y", "en", "10:11:12, 9.2.2026", "2026-02-09T10:11:12"),
        ("d 'o''clock' MMM y", "en", "1 o'clock May 2020", "2020-05-01"),
        ("y-MM-dd", "en", "1800-01-01", "1800-01-01"),
        ("y-MM-dd", "en", "2200-12-31", "2200-12-31"),
    ] {
        assert_eq!(date(pattern, language, text).as_deref(), Some(expected), "{pattern} {text}");
    }
    for (pattern, language, text) in [
        ("d MMMM y", "en", "31 February 2026"),
        ("d MMMM y", "en", "23 Novembre 2026"),
        ("d MMMM y", "en", "23 November 2026 at noon"),
        ("d MMMM y", "fr", "14 jui 2024"),
        ("d MMMM y", "en", "1 Ma 2024"),
        ("M/d/y", "en", "23/11/2026"),
        ("M/d/y", "en", "2/9/26"),
        ("M/d/y h:mm a", "en", "2/9/2026 13:05 PM"),
        ("HH:mm d.M.y", "en", "24:00 1.1.2026"),
        ("y", "en", ""),
        ("y/MM/dd", "en", "۱۴۰۴/۰۸/۱۲"),
        ("yy/MM/dd", "en", "۰۴/۰۸/۱۲"),
        ("d/M/y", "ar", "١٥/٣/١٤٤٧"),
        ("d/M/y", "en", "12/11/2569"),
        ("y", "en", "1799"),
        ("y-MM-dd HH:mm", "en", "9999-12-31 23:59"),
    ] {
        assert_eq!(date(pattern, language, text), None, "{pattern} {text}");
    }
}

#[test]
fn texts_are_converted() {
    for (converter, text, expected) in [
        (json!("trim"), " a \n\u{a0} b ", Some(json!("a b"))),
        (json!({ "match": "ID (\\d+)" }), "Your ID 42.", Some(json!("42"))),
        (json!({ "match": "\\d+" }), "Your ID 42.", Some(json!("42"))),
        (json!({ "match": "^a(b)?$" }), "a", None),
        (json!({ "match": "x" }), "a", None),
        (json!({ "except": ["not provided", "–"] }), " Not  provided", None),
        (json!({ "except": ["not provided"] }), "Ada", Some(json!("Ada"))),
        (json!({ "boolean": { "true": ["Ja"], "false": ["Nein"] } }), " ja ", Some(json!(true))),
        (json!({ "boolean": { "true": ["Ja"], "false": ["Nein"] } }), "nein", Some(json!(false))),
        (json!({ "boolean": { "true": ["Ja"], "false": ["Nein"] } }), "?", None),
        (json!({ "map": { "Gold member": "gold" } }), "Gold  member", Some(json!("gold"))),
        (json!({ "map": { "Gold member": "gold" } }), "Silver", None),
    ] {
        assert_eq!(convert(&converter, text), expected, "{converter} {text}");
    }
}

#[test]
fn converters_that_can_never_apply_are_reported() {
    let long = "a".repeat(501);
    for converter in [
        json!({ "match": "(" }),
        json!({ "match": "" }),
        json!({ "match": "(a)(b)" }),
        json!({ "match": "a{5000}{5000}" }),
        json!({ "match": "(?=a)" }),
        json!({ "match": long }),
        json!({ "except": [] }),
        json!({ "map": {} }),
        json!({ "boolean": { "true": ["a"], "false": [] } }),
        json!({ "boolean": { "true": ["a"], "false": ["A "] } }),
        json!({ "date": { "pattern": "" } }),
        json!({ "date": { "pattern": "d MMMM" } }),
        json!({ "date": { "pattern": "d y" } }),
        json!({ "date": { "pattern": "y y" } }),
        json!({ "date": { "pattern": "y HH:mm" } }),
        json!({ "date": { "pattern": "y-M-d HH" } }),
        json!({ "date": { "pattern": "y-M-d hh:mm" } }),
        json!({ "date": { "pattern": "y-M-d XXX" } }),
        json!({ "date": { "pattern": "d of MMMM y" } }),
        json!({ "date": { "pattern": "y 'a" } }),
        json!({ "date": { "pattern": "YYYY-MM-DD" } }),
    ] {
        let converter: Converter = serde_json::from_value(converter).unwrap();
        assert!(converter.error().is_some(), "{converter:?}");
    }
}

proptest! {
    // Few cases, for a fast loop; PROPTEST_CASES multiplies them.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 4,
        ..ProptestConfig::default()
    })]

    /// No text makes a converter panic, and what it returns is of its type.
    #[test]
    fn converters_are_total(text in "\\PC{0,60}|[0-9 .,'-]{0,30}", pattern in "[a-zMHE :/.'-]{0,20}") {
        for mark in [DecimalMark::Point, DecimalMark::Comma] {
            let number = parse_number(&text, mark);
            prop_assert!(number.is_none_or(|number| number.is_number()));
        }
        let format = DateFormat { pattern: pattern.clone(), language: Some(DateLanguage::De) };
        let converter = Converter::Date(format);
        if converter.error().is_none() {
            let _ = converter.apply(&json!(text));
        }
        let converter = Converter::Match(pattern);
        let _ = (converter.error(), converter.apply(&json!(text)));
    }

    /// Amounts as the locales of the Unicode CLDR write them keep their sign.
    #[test]
    fn amounts_of_locales_keep_their_value(cents in 1..10_i64.pow(12), at in any::<prop::sample::Index>()) {
        let (mark, group, negative, positive) = *at.get(AMOUNT_FORMATS);
        let decimal = match mark {
            DecimalMark::Point => ".",
            DecimalMark::Comma => ",",
        };
        let (whole, fraction) = (cents / 100, format!("{:02}", cents % 100));
        let value: f64 = format!("{whole}.{fraction}").parse().unwrap();
        let amount = format!("{}{decimal}{fraction}", grouped(whole, group));
        for (format, value) in [(positive, value), (negative, -value)] {
            let text = format.replace("{}", &amount);
            let number = parse_number(&text, mark).and_then(|number| number.as_f64());
            prop_assert_eq!(number, Some(value), "{}", text);
        }
    }

    /// A dash next to a number is its sign, or the number is missing.
    #[test]
    fn a_dash_before_a_number_is_never_dropped(
        before in "\\PC{0,8}|[a-zA-Z$€ :(]{0,8}",
        dash in "[-\u{2013}\u{2212}\u{2014}] ?",
        currency in "(\\$|€|US\\$|EUR |R\\$ |kr\\. )?",
        number in "[1-9][0-9]{0,2}([.,][0-9]{2})?",
    ) {
        let text = format!("{before}{dash}{currency}{number}");
        for mark in [DecimalMark::Point, DecimalMark::Comma] {
            let number = parse_number(&text, mark).and_then(|number| number.as_f64());
            prop_assert!(number.is_none_or(|number| number < 0.0), "{}", text);
        }
    }
}

/// The decimal mark, the mark between groups, and how negative and positive amounts are written.
const AMOUNT_FORMATS: &[(DecimalMark, &str, &str, &str)] = &[
    (DecimalMark::Point, ",", "-${}", "${}"),
    (DecimalMark::Point, ",", "-US${}", "US${}"),
    (DecimalMark::Point, ",", "-EUR\u{a0}{}", "EUR\u{a0}{}"),
    (DecimalMark::Point, "\u{2019}", "CHF-{}", "CHF\u{a0}{}"),
    (DecimalMark::Comma, ".", "-{}\u{a0}€", "{}\u{a0}€"),
    (DecimalMark::Comma, ".", "-R$\u{a0}{}", "R$\u{a0}{}"),
    (DecimalMark::Comma, ".", "€\u{a0}-{}", "€\u{a0}{}"),
    (DecimalMark::Comma, ".", "-{}\u{a0}kr.", "{}\u{a0}kr."),
    (DecimalMark::Comma, "\u{a0}", "\u{2212}{}\u{a0}kr", "{}\u{a0}kr"),
    (DecimalMark::Comma, "\u{202f}", "\u{2013}{} €", "+{} €"),
    (DecimalMark::Comma, "\u{a0}", "-{}\u{a0}zł", "{}\u{a0}zł"),
    (DecimalMark::Comma, ".", "-₺{}", "₺{}"),
    (DecimalMark::Comma, ".", "{}-", "{}"),
    (DecimalMark::Comma, ".", "{} -", "{} EUR"),
    (DecimalMark::Comma, ".", "\u{200f}-{}\u{a0}ر.س.\u{200f}", "\u{200f}{}\u{a0}ر.س.\u{200f}"),
];

/// Returns a number with a mark between groups of three digits.
fn grouped(number: i64, mark: &str) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push_str(mark);
        }
        text.push(digit);
    }
    text
}
