//! Tests of the search for tokens in texts.

use proptest::prelude::*;

use super::token::{FoundToken, Label, Place, find_tokens, is_digest, is_list_of_codes, mask_of};

const HEX: &str = "9a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a6b";
const WEB_TOKEN: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1g";
const BASE64: &str = "q8Zt3vLw9XcR2mKp7YbN5sHd1GfJ4aTe+U6o/Ei0";

fn found(text: &str, place: Place, label: Label) -> Vec<String> {
    let found = find_tokens(text, place, label, &|_| false);
    found.into_iter().map(|found| found.token).collect()
}

#[test]
fn tokens_are_told_by_their_form_and_by_labels() {
    let pair = format!("5f3c1a2b4d6e8f0a1b2c3d4e:{HEX}");
    let (upper, padded) = (HEX.to_ascii_uppercase(), format!("{BASE64}=="));
    let encoded = BASE64.replace('/', "%2F").replace('+', "%2B");
    let cases: [(&str, &str); 17] = [
        (HEX, HEX),
        (&upper, &upper),
        (&format!("Staff access token: {pair}"), &pair),
        (&pair, &pair),
        (&format!("Bearer {WEB_TOKEN}"), WEB_TOKEN),
        (&format!("Your token is {WEB_TOKEN}."), WEB_TOKEN),
        (BASE64, BASE64),
        (&padded, &padded),
        ("shop_live_51HxY2eKq8Zt3vLw9XcR", "shop_live_51HxY2eKq8Zt3vLw9XcR"),
        ("use shop_16C7e42F292c6912E7710c838347 here", "shop_16C7e42F292c6912E7710c838347"),
        ("(shop-a8Kd93jsLq02mZx7Pq5T)", "shop-a8Kd93jsLq02mZx7Pq5T"),
        ("k3j4h5g6f7d8s9a0q1w2e3r4t5y6u7i8o9", "k3j4h5g6f7d8s9a0q1w2e3r4t5y6u7i8o9"),
        ("API key: ab12cd34", "ab12cd34"),
        ("Recovery code 483920", "483920"),
        ("https://a.test/in?api_key=ab12cd34ef&n=2", "ab12cd34ef"),
        (&format!("Authorization: token={BASE64}"), BASE64),
        (&format!("a={encoded}"), BASE64),
    ];
    for (text, expected) in cases {
        assert_eq!(found(text, Place::Text, Label::Other), [expected], "{text}");
    }
    for (text, label, expected) in [
        ("abcd-1234", Label::Secret, "abcd-1234"),
        ("4839-2017", Label::Code, "4839-2017"),
        (
            "0b9ab1a6-2c5c-4a86-9e0a-7d3f0c1b2a3d",
            Label::Secret,
            "0b9ab1a6-2c5c-4a86-9e0a-7d3f0c1b2a3d",
        ),
    ] {
        assert_eq!(found(text, Place::Text, label), [expected], "{text}");
    }
    let address = format!("/orders/7?key={HEX}");
    assert_eq!(found(&address, Place::Address, Label::Other), [HEX]);
    let asset = format!("/a.js?v={HEX}&token=ab12cd34&jwt={WEB_TOKEN}");
    assert_eq!(found(&asset, Place::Asset, Label::Other), ["ab12cd34", WEB_TOKEN]);
    let is_known = |text: &str| text == HEX;
    assert_eq!(find_tokens(&asset, Place::Asset, Label::Other, &is_known).len(), 3);
}

#[test]
fn tokens_are_found_in_other_texts_and_encodings() {
    let long = "x ".repeat(150);
    let encrypted = format!("{WEB_TOKEN}.a.b");
    let dotted = "AB.q8Zt3vLw9XcR2mKp7YbN5s.Hd1GfJ4aTeU6oEi0q8Zt3vLw9XcR";
    let slash = "/8Zt3vLw9XcR2mKp7YbN5sHd1GfJ4aTe+U6o/Ei0aB3=";
    let hook = format!("whsec_{BASE64}");
    let base32 = "JBSWY3DPEHPKUXPQJBSWYADPEHMKZXP7";
    let texts: [(&str, &str); 16] = [
        (&format!("{long} {{\"apiKey\": \"ab12cd34ef\"}}"), "ab12cd34ef"),
        (&format!("{long} {{\\\"apiKey\\\":\\\"ab12cd34ef\\\"}}"), "ab12cd34ef"),
        (&format!("{long} API_KEY = ab12cd34ef"), "ab12cd34ef"),
        (&format!("data: {WEB_TOKEN}"), WEB_TOKEN),
        (&format!("data:{{\"of\":\"{WEB_TOKEN}\",\"n\":1}}"), WEB_TOKEN),
        ("https://ada:ab12cd34ef@shop.test/x.git", "ab12cd34ef"),
        (&format!("db://{HEX}@shop.test/x"), HEX),
        (&encrypted, &encrypted),
        (dotted, dotted),
        (slash, slash),
        (&hook, &hook),
        (base32, base32),
        (&format!("go to %22{HEX}%22"), HEX),
        (&format!("ends {HEX}%20"), HEX),
        (&format!("Bearer+{WEB_TOKEN}"), WEB_TOKEN),
        (&format!("javascript:copy('{HEX}')"), HEX),
    ];
    for (text, expected) in texts {
        assert_eq!(found(text, Place::Text, Label::Other), [expected], "{text}");
    }
    let addresses: [(&str, &str); 8] = [
        ("/in?next=https%3A%2F%2Fa.test%2Fcb%3Ftoken%3Dab12cd34ef%26n%3D1", "ab12cd34ef"),
        (&format!("/in?next=%2Fcb%3fk%3d{WEB_TOKEN}"), WEB_TOKEN),
        (&format!("/in?f=%7B%22of%22%3A%22{HEX}%22%7D"), HEX),
        ("/in?user[api_key]=ab12cd34ef", "ab12cd34ef"),
        ("/in?user%5Bapi_key%5D=ab12cd34ef", "ab12cd34ef"),
        (&format!("/in?as=Bearer%20{WEB_TOKEN}"), WEB_TOKEN),
        ("https://ada:ab12cd34ef@shop.test/x?n=1", "ab12cd34ef"),
        (&format!("javascript:copy('{HEX}')"), HEX),
    ];
    for (address, expected) in addresses {
        assert_eq!(found(address, Place::Address, Label::Other), [expected], "{address}");
    }
    for (text, label) in [
        ("ab12 cd34 ef56 gh78", Label::Secret),
        ("4839 2017", Label::Code),
        ("abcd-efgh", Label::Code),
    ] {
        assert_eq!(found(text, Place::Text, label), [text]);
        assert!(is_list_of_codes(text) && found(text, Place::Text, Label::Other).is_empty());
    }
    assert!(is_list_of_codes("1.") && is_list_of_codes("2. abcd-1234, abcd-5678"));
    assert!(!is_list_of_codes("Copy") && !is_list_of_codes(" "));
    // What is masked in a text does not make it a list of codes.
    assert!(is_list_of_codes("masked-1") && !is_list_of_codes("=masked-1"));
}

#[test]
fn other_texts_are_no_tokens() {
    for text in [
        "Ada Lovelace",
        "",
        "0b9ab1a6-2c5c-4a86-9e0a-7d3f0c1b2a3d",
        "12345678901234567890123456789012345678",
        "getUserAccountSettingsPageTemplate2",
        "my-article-about-the-budget-of-2024-and-of-2025",
        "https://a.test/orders/9a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d",
        "/assets/9a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d.js",
        "assets/app.9a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d.js",
        "data:image/png;base64,q8Zt3vLw9XcR2mKp7YbN5sHd1GfJ4aTe+U6o/Ei0",
        "url(data:font/woff2;base64,q8Zt3vLw9XcR2mKp7YbN5sHd1GfJ4aTe+U6o/Ei0)",
        "Forgot your password?",
        "Password changed on 2026-12-01",
        "Token expires 2026-12-01T10:00:00Z",
        "Tokens used: 1200000",
        "Secret Santa",
        "ada12345@shop.test has a password",
        "DE89370400440532013000",
        "DE89 3704 0044 0532 0130 00",
        "+49 30 1234567",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1",
        "eyJhbGciOiJIUzI1NiJ9.only",
        "order_confirmationEmailTemplate",
        "masked-1-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "token=masked",
        "Base64Utf8String.com.shop.Base64Utf8StringConverter2",
        "https://shop.test/in?next=https%3A%2F%2Fshop.test%2Forders%2F9a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d",
        "{\"name\": \"ab12cd34ef\", \"other\": \"ab12cd35ef\"}",
    ] {
        assert_eq!(found(text, Place::Text, Label::Other), Vec::<String>::new(), "{text}");
    }
    let hashed = format!("/{HEX}/app.js?v={HEX}");
    assert_eq!(found(&hashed, Place::Asset, Label::Other), Vec::<String>::new());
    let order = format!("/orders/{HEX}?page=2");
    assert_eq!(found(&order, Place::Address, Label::Other), Vec::<String>::new());
    for label in [Label::of("nextPageToken"), Label::of("name"), Label::of("50% of tokens")] {
        assert_eq!(label, Label::Other);
    }
    assert!(is_digest("commitSha") && is_digest("etag") && !is_digest("tokenHash"));
}

#[test]
fn a_known_token_is_found_in_a_path_and_in_encoded_form() {
    let is_known = |text: &str| text == "ab/12";
    let found = |text: &str, place| {
        let found = find_tokens(text, place, Label::Other, &is_known);
        found.into_iter().map(|found| text[found.range].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("/keys/ab%2F12/edit", Place::Address), ["ab%2F12"]);
    assert_eq!(found("https://a.test/x?k=ab%2F12#ab/12", Place::Address), ["ab%2F12", "ab/12"]);
    assert_eq!(found("is ab/12, or ab/123", Place::Text), ["ab/12"]);
}

proptest! {
    /// No text makes the search panic, what is found is in order, and a mask is never found.
    #[test]
    fn the_search_is_total(text in "\\PC{0,80}|[a-zA-Z0-9_=./:%&?-]{0,120}", number in 1_usize..9999) {
        for place in [Place::Text, Place::Address, Place::Asset] {
            for label in [Label::Other, Label::Secret, Label::Code] {
                let found = find_tokens(&text, place, label, &|_| false);
                let mut at = 0;
                for FoundToken { range, .. } in found {
                    prop_assert!(range.start >= at && text.get(range.clone()).is_some());
                    at = range.end;
                }
            }
        }
        let mask = mask_of(number, &text);
        prop_assert!(mask.len() >= text.len());
        prop_assert_eq!(find_tokens(&mask, Place::Text, Label::Code, &|_| false), vec![]);
    }
}
