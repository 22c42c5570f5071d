//! The currencies that are recognized beside a number.

use super::number::is_part_of_word;

/// Letters in front of a sign, as in `US$`.
const MAX_SIGN_LETTERS: usize = 3;
const MAX_NAME_CHARS: usize = 5;
/// The codes of ISO 4217.
const CODES: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL \
    BSD BTN BWP BYN BZD CAD CDF CHF CLF CLP CNH CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB \
    EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD \
    JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU \
    MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB \
    RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD \
    TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG";
/// Symbols that consist of letters, in lower case.
const SYMBOLS: &[&str] = &[
    "b/.", "bs", "bs.", "cfa", "cfpf", "f cfa", "fcfa", "fr", "fr.", "ft", "kr", "kr.", "kč",
    "lei", "r", "rm", "rp", "rp.", "rs", "rs.", "s/", "s/.", "sfr", "sfr.", "tl", "zł", "грн",
    "лв", "лв.", "руб", "руб.", "ج.م.", "د.إ.", "د.ك.", "ر.س.", "ر.ق.", "ریال",
];

/// Returns the length of the currency that a text ends with; 0 if there is none.
pub(super) fn trailing_currency(chars: &[char]) -> usize {
    if chars.last().is_some_and(|c| is_currency_sign(*c)) {
        let letters = chars.iter().rev().skip(1).take_while(|c| c.is_alphabetic()).count();
        return if letters <= MAX_SIGN_LETTERS { letters + 1 } else { 1 };
    }
    let mut lengths = (1..=MAX_NAME_CHARS.min(chars.len())).rev();
    let found = lengths.find(|length| {
        let (before, name) = chars.split_at(chars.len() - *length);
        is_name(name) && before.last().is_none_or(|c| !is_part_of_word(*c))
    });
    found.unwrap_or(0)
}

/// Returns the length of the currency that a text begins with; 0 if there is none.
pub(super) fn leading_currency(chars: &[char]) -> usize {
    let letters = chars.iter().take_while(|c| c.is_alphabetic()).count();
    if letters <= MAX_SIGN_LETTERS && chars.get(letters).is_some_and(|c| is_currency_sign(*c)) {
        return letters + 1;
    }
    let mut lengths = (1..=MAX_NAME_CHARS.min(chars.len())).rev();
    let found = lengths.find(|length| {
        let (name, after) = chars.split_at(*length);
        is_name(name) && after.first().is_none_or(|c| !is_part_of_word(*c))
    });
    found.unwrap_or(0)
}

fn is_name(chars: &[char]) -> bool {
    let text: String = chars.iter().collect();
    CODES.split(' ').any(|code| code == text) || SYMBOLS.contains(&text.to_lowercase().as_str())
}

/// Returns whether a character is of the category of currency signs (Unicode, `Sc`).
pub(super) const fn is_currency_sign(c: char) -> bool {
    matches!(
        c,
        '$' | '\u{a2}'..='\u{a5}'
            | '\u{58f}'
            | '\u{60b}'
            | '\u{9f2}'
            | '\u{9f3}'
            | '\u{9fb}'
            | '\u{af1}'
            | '\u{bf9}'
            | '\u{e3f}'
            | '\u{17db}'
            | '\u{20a0}'..='\u{20c0}'
            | '\u{a838}'
            | '\u{fdfc}'
            | '\u{fe69}'
            | '\u{ff04}'
            | '\u{ffe0}'
            | '\u{ffe1}'
            | '\u{ffe5}'
            | '\u{ffe6}'
    )
}
