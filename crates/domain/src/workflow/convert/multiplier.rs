//! Words that multiply the number before them, so that it alone is not the number that was meant.

use super::sign::is_dash;

/// The words and their abbreviations, in lower case, one language a row. Words with accents are also
/// listed without them, for texts whose accents are characters of their own. Words that are also units
/// are left out, such as the Spanish "miles".
const MULTIPLIERS: &[&str] = &[
    "b bil billion billions bn cr crore crores dozen dozens hundred hundreds k lac lacs lakh lakhs m mil \
     mill million millions mn thousand thousands thsd tn tr trillion trillions trn",
    // In Germany and France "Billion" is 10^12 and the word here 10^9; in any case they multiply.
    "billionen bio dutzend hundert mill milliarde milliarden millionen mio mrd tausend trillionen tsd \
     keur mdeur meur mioeur mrdeur teur",
    "billiard billiards douzaine douzaines md mds mille millier milliers milliard milliards mrd mrds",
    "billon billones billón centenares cientos docena docenas mil millar millardo millardos millares \
     millon millones millón mdp",
    "bilione bilioni centinaia dozzina dozzine mila milione milioni miliardo miliardi migliaia \
     migliaio mld mln",
    "biljard biljoen dozijn duizend honderd miljard miljarden miljoen miljoenen mld mln",
    "bilion biliona biliony bilionów bilionow miliard miliarda miliardy miliardów miliardow milion \
     miliona miliony milionów milionow tuzin tys tysiąc tysiac tysiąca tysiaca tysiące tysiace \
     tysięcy tysiecy",
    "bi bilhão bilhao bilhões bilhoes bilião biliao biliões bilioes dúzia duzia dúzias duzias mi \
     milhar milhares milhão milhao milhões milhoes tri trilhão trilhao trilhões trilhoes",
    "bin düzine duzine katrilyon milyar milyon mlr mr trilyon yüz yuz",
    "ألف الف آلاف الاف ألفا مئة مائة مليون ملايين مليونا مليار مليارات بليون تريليون",
    "هزار صد میلیون ملیون میلیارد تریلیون",
    "हज़ार हज़ार हजार लाख करोड़ करोड़ करोड अरब खरब सौ",
    "tusen tusind miljon miljoner miljarder millioner millionar milliarder mia mkr tkr mdr mdkr",
    "tuhat tuhatta miljoona miljoonaa miljardi miljardia",
    "tis tisíc tisic milionu milionů miliardu ezer millió millio milliárd mii milioane miliarde \
     milion miliardă miliarda",
    "тыс тысяча тысячи тысяч млн миллион миллиона миллионов млрд миллиард миллиарда миллиардов трлн \
     тис тисяч мільйон мільйонів мільярд мільярдів",
    "ribu rb juta jt miliar nghìn nghin ngàn ngan triệu trieu tỷ ty tỉ ti",
    "百 千 万 萬 亿 億 兆 천 만 억 조",
];
/// Abbreviations in capital letters that are units in small ones.
const CAPITAL_MULTIPLIERS: &[&str] = &["MM", "T"];
/// Multipliers of amounts that are units elsewhere, as in "5 T€" (thousand) and "₹5 L" (lakh).
const AMOUNT_MULTIPLIERS: &[&str] = &["g", "l", "mm", "t"];

/// Abbreviations that also stand in front of an amount, as in "Mio. EUR 5,2".
const LEADING_MULTIPLIERS: &[&str] = &["mio", "mld", "mln", "mlrd", "mrd", "tsd"];
/// One that is a word of its own without its dot, as in "Lait bio 1,29 €".
const DOTTED_MULTIPLIER: &str = "bio";

/// Returns whether a text begins with a multiplier, after spaces, a hyphen or a parenthesis.
pub(super) fn begins_with_multiplier(chars: &[char]) -> bool {
    let (raw, lower) = first_word(chars);
    let mut words = MULTIPLIERS.iter().flat_map(|row| row.split(' '));
    words.any(|multiplier| multiplier == lower) || CAPITAL_MULTIPLIERS.contains(&raw.as_str())
}

/// Returns whether a text begins with what multiplies an amount of money.
pub(super) fn begins_with_amount_multiplier(chars: &[char]) -> bool {
    let (_, lower) = first_word(chars);
    AMOUNT_MULTIPLIERS.contains(&lower.as_str())
}

/// Returns whether a text ends with what multiplies the amount of money after it.
pub(super) fn ends_with_multiplier(chars: &[char]) -> bool {
    let word = last_word(chars);
    let is_dotted = chars.iter().rev().find(|c| **c != ' ') == Some(&'.');
    LEADING_MULTIPLIERS.contains(&word.as_str()) || (is_dotted && word == DOTTED_MULTIPLIER)
}

/// Returns the first word as it is, and in lower case without accents that are characters of their own.
pub(super) fn first_word(chars: &[char]) -> (String, String) {
    let is_accent = |c: char| ('\u{300}'..='\u{36f}').contains(&c);
    let word = chars
        .iter()
        .copied()
        .skip_while(|c| matches!(*c, ' ' | '(') || is_dash(*c))
        .take_while(|c| c.is_alphabetic() || is_accent(*c) || *c == '\u{93c}');
    let raw: String = word.collect();
    let lower = raw.to_lowercase().chars().filter(|c| !is_accent(*c)).collect();
    (raw, lower)
}

/// Returns the last word in lower case, without the dot of an abbreviation.
pub(super) fn last_word(chars: &[char]) -> String {
    let reversed = chars.iter().rev().skip_while(|c| matches!(**c, ' ' | '.'));
    let word: Vec<char> = reversed.take_while(|c| c.is_alphabetic()).copied().collect();
    word.into_iter().rev().flat_map(char::to_lowercase).collect()
}
