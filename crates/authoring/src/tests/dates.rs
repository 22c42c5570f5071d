//! What is proposed for texts with a date and a time.

use domain::workflow::FieldFormat;
use serde_json::json;

use crate::values::propose_values;

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
