//! What is proposed for texts with a date and a time.

use domain::workflow::FieldFormat;
use serde_json::json;

use crate::values::{is_unread_date, propose_values};

#[test]
fn the_date_of_a_date_and_time_is_proposed_as_it_is_written() {
    for (sample, language, value) in [
        ("Nov. 24, 2026, 4:44 p.m.", "en", "2026-11-24"),
        ("Last seen: 30 November 2026 4:44 p.m.", "en", "2026-11-30"),
        ("1. März 2019, 14:30 Uhr", "de", "2019-03-01"),
        // In another time zone it is another date.
        ("2026-11-30T23:30:00-08:00", "en", "2026-11-30"),
        ("2026-12-01T00:15:00+14:00", "en", "2026-12-01"),
    ] {
        let proposals = propose_values(sample, language);
        let formats: Vec<_> = proposals.iter().take(2).map(|one| one.format).collect();
        let expected = [Some(FieldFormat::DateTime), Some(FieldFormat::Date)];
        assert_eq!(formats, expected, "{sample}: {proposals:?}");
        let date = proposals.get(1).unwrap();
        assert_eq!(date.value, json!(value), "{sample}");
        assert!(date.description.starts_with("Date without the time, written as "), "{date:?}");
        let read = |text: &str| {
            date.convert.iter().try_fold(json!(text), |value, step| step.apply(&value))
        };
        assert_eq!(read(sample), Some(json!(value)), "{sample}");
        assert_eq!(read("yesterday, 4:44 p.m."), None);
    }
    let unclear = propose_values("04/05/2026, 4:44 PM", "en");
    for value in ["2026-04-05", "2026-05-04"] {
        let found = unclear.iter().find(|one| one.value == json!(value)).unwrap();
        assert!(found.description.contains("does not show"), "{found:?}");
    }
    assert_eq!(unclear.first().unwrap().format, None);
    let date = propose_values("Member since May 3, 2020", "en");
    assert_eq!(date.iter().filter(|one| one.format.is_some()).count(), 1, "{date:?}");
}

#[test]
fn dates_with_a_year_of_two_digits_are_proposed() {
    for (sample, language, value) in [
        ("11/30/26, 9:08:07 AM", "en", "2026-11-30T09:08:07"),
        ("2/13/26, 3:02:07\u{202f}PM", "en", "2026-02-13T15:02:07"),
        ("11/30/2026 2:08 p.m.", "en", "2026-11-30T14:08:00"),
        ("30/11/26", "fr", "2026-11-30"),
        ("Joined 11/30/99", "en", "1999-11-30"),
        ("30-Nov-26 14:30", "en", "2026-11-30T14:30:00"),
        ("30.11.26, 14:30", "de", "2026-11-30T14:30:00"),
        ("26/11/10", "ja", "2026-11-10"),
    ] {
        let proposals = propose_values(sample, language);
        let first = proposals.first().unwrap();
        assert_eq!(first.value, json!(value), "{sample}: {proposals:?}");
        assert!(!first.description.contains("could be"), "{sample}: {first:?}");
        let is_short = !sample.contains("2026");
        assert_eq!(first.description.contains("2000 to 2069"), is_short, "{first:?}");
    }
    for (sample, values, reason) in [
        ("2/3/26", &["2026-02-03", "2026-03-02"][..], "which is first"),
        ("2/3/26, 9:08 PM", &["2026-02-03T21:08:00", "2026-03-02T21:08:00"][..], "which is first"),
        ("26-11-30", &["2026-11-30", "2030-11-26"][..], "first or last"),
        ("30.11.26", &["2026-11-30"][..], "such as a version"),
    ] {
        let proposals = propose_values(sample, "en");
        assert_eq!(proposals.first().unwrap().value, json!(sample), "{proposals:?}");
        for value in values {
            let found = proposals.iter().find(|one| one.value == json!(value));
            let found = found.unwrap_or_else(|| panic!("{sample}: {proposals:?}"));
            assert!(found.description.contains(reason), "{found:?}");
        }
    }
}

#[test]
fn a_date_is_not_guessed_where_the_year_is_first_or_last() {
    for (sample, language) in
        [("26/11/30", "zh-HK"), ("26/11/30", "zh-Hant-MO"), ("26.11.30", "zh-SG")]
    {
        let proposals = propose_values(sample, language);
        assert_eq!(proposals.first().unwrap().format, None, "{sample}: {proposals:?}");
        for value in ["2026-11-30", "2030-11-26"] {
            let found = proposals.iter().find(|one| one.value == json!(value));
            assert!(found.unwrap().description.contains("does not show"), "{proposals:?}");
        }
    }
    let day_first = propose_values("30/11/26", "zh-HK");
    assert!(day_first.iter().any(|one| one.value == json!("2026-11-30")), "{day_first:?}");
    for language in ["zh-CN", "zh"] {
        let proposals = propose_values("26/11/30", language);
        assert_eq!(proposals.first().unwrap().value, json!("2026-11-30"), "{language}");
    }
}

#[test]
fn a_text_that_looks_like_a_date_and_cannot_be_read_is_told() {
    let is_unread = |sample: &str, language: &str| {
        is_unread_date(sample, language, &propose_values(sample, language))
    };
    for (sample, language) in [
        ("11/30/26, about noon", "en"),
        ("13/14/2026", "en"),
        ("Nov. 30, 2026, 2 p.m.", "en"),
        ("30 Nov", "en"),
        ("30 Nov 2026, 04:44 م", "ar"),
        ("١٥/٣/١٤٤٧", "ar"),
        ("December to January 2026", "en"),
    ] {
        assert!(is_unread(sample, language), "{sample}");
    }
    for sample in [
        "11/30/26",
        "2/3/2026",
        "Member since May 3, 2020",
        "2,048 comments",
        "You may edit 3 of 12 items",
        "10.20.30",
        "192.168.10.20",
        "555-12-3456",
        "",
    ] {
        assert!(!is_unread(sample, "en"), "{sample}");
    }
}
