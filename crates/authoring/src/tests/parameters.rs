//! What is proposed for links that only a parameter of their address tells apart.

use domain::workflow::find_elements;

use super::{page, select, with_text};
use crate::{draft::KnownValues, parameters::propose_places};

/// Returns the selectors of a link among others on a page, with those that match it alone in its second
/// item.
fn selectors(hrefs: &[(&str, &str)], text: &str, known: &[&str]) -> Vec<(String, bool)> {
    let links = hrefs.iter().map(|(href, text)| format!("\n  p\n   a href={href}\n    \"{text}\""));
    let page = page(&format!("html\n body{}", links.collect::<String>()));
    let own = known.iter().map(|value| ((*value).to_owned(), (*value).to_owned()));
    let known: KnownValues = own.collect();
    let node = with_text(&page, text);
    let found = propose_places(&page, node, &known, &select);
    for proposal in &found {
        let all = find_elements(&page, 0, &proposal.selector, &select);
        assert_eq!((all.first(), all.len()), (Some(&node), proposal.matches), "{proposal:?}");
    }
    found.into_iter().map(|found| (found.selector, found.matches == 1)).collect()
}

const CHANGES: &[(&str, &str)] = &[
    ("/changes/?user=ada", "all"),
    ("/changes/?user=ada&action=3", "2,048 comments"),
    ("/changes/?user=ada&action=2", "11 edits"),
    ("/changes/?user=ada&page=2&ids=a81f3c07", "Next"),
];

#[test]
fn a_parameter_that_one_link_has_comes_before_its_position() {
    for (text, selector) in [("2,048 comments", "action=3"), ("11 edits", "action=2")] {
        let found = selectors(CHANGES, text, &["ada"]);
        let expected = (format!("a[href$=\"{selector}\"]"), true);
        assert_eq!(found.first(), Some(&expected), "{found:?}");
    }
    let others = [("/a?action=31", "more"), ("/a?action=3", "comments")];
    let found = selectors(&others, "comments", &[]);
    assert_eq!(found.first(), Some(&("a[href$=\"action=3\"]".to_owned(), true)), "{found:?}");
    // Also where no link of the page has a longer number yet.
    for (rest, expected) in [
        ("", "a[href$=\"action=3\"]"),
        ("&x=y", "a[href*=\"action=3&\"]"),
        ("#top", "a[href*=\"action=3#\"]"),
    ] {
        let href = format!("/a?action=3{rest}");
        let found = selectors(&[("/a?action=2", "edits"), (&href, "comments")], "comments", &[]);
        assert_eq!(found.first(), Some(&(expected.to_owned(), true)), "{found:?}");
    }
    let others = [("/users/?sort=name", "users"), ("/teams/?sort=name&x=1", "teams")];
    let found = selectors(&others, "teams", &[]);
    let both = ("a[href*=\"/teams/\"][href*=\"sort=name\"]".to_owned(), true);
    assert!(found.contains(&both), "{found:?}");
}

#[test]
fn a_parameter_of_the_account_or_of_a_page_is_not_proposed() {
    let has_parameter = |hrefs: &[(&str, &str)], text: &str, known: &[&str]| {
        selectors(hrefs, text, known).iter().any(|(selector, _)| selector.contains('='))
    };
    for parameter in ["tab=edits", "order=asc", "document=passport", "step=3"] {
        let href = format!("/?{parameter}");
        assert!(has_parameter(&[(href.as_str(), "edits")], "edits", &[]), "{parameter}");
    }
    // The value of a short one as well.
    assert!(!has_parameter(&[("/?action=3", "edits")], "edits", &["3"]));
    assert!(!has_parameter(&[("/?tab=edits", "edits")], "edits", &["Edits"]));
    for parameter in [
        "page=2",
        "page[number]=2",
        "offset=20",
        "p=2",
        "cursor=abc",
        "user=ada",
        "user_id=7",
        "id=7",
        "csrf=abc",
        "order=a81f3c07",
        "order=20261130",
        "order=124",
        "name=ada",
        "lastName=lovelace",
        "month=11",
        "month=november",
        "startDate=11",
        "authenticity_token=abcdefgh",
        "csrfToken=abcdefgh",
        "contact_email=ada",
        "order=12",
        "order=n12",
        "invoiceNo=7",
        "row=3",
        "name=Ada%20L",
        "name=",
        "name",
    ] {
        let href = format!("/?{parameter}");
        assert!(!has_parameter(&[(href.as_str(), "link")], "link", &[]), "{parameter}");
    }
}
