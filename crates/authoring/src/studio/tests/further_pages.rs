//! What tells that a list in a page has further pages.

use domain::workflow::{Definition, PageTree};
use serde_json::Value;

use crate::{
    draft::set_next_page,
    lists::ListProposal,
    studio::{StudioView, further_pages::further_page, state::State, view::Surroundings},
    tests::{changes::with_orders, page, select},
};

fn rows() -> ListProposal {
    ListProposal {
        at: "#orders".to_owned(),
        each: Some("tr".to_owned()),
        member: "td".to_owned(),
        rows: 2,
    }
}

/// Returns a page with a table of orders, and something after it.
fn with_pager(after: &str) -> PageTree {
    let row = |cell: &str| format!("\n   tr\n    td\n     \"{cell}\"");
    page(&format!("html\n body\n  table id=orders{}{}{after}", row("A-1"), row("A-2")))
}

fn found(after: &str) -> Option<String> {
    further_page(&with_pager(after), &rows(), &select)
}

#[test]
fn a_page_with_a_link_to_its_next_one_has_further_pages() {
    for (after, expected) in [
        ("\n  a rel=nofollow+next href=?page=2\n   \"Go\"", "a[rel~=\"next\"]"),
        ("\n  a class=page-next href=?page=2\n   \"Go\"", "a.page-next"),
        ("\n  ul\n   li class=next\n    a href=/orders/2\n     \"Go\"", "li.next a"),
        ("\n  nav\n   button aria-label=›", "button[aria-label=\"›\"]"),
        (
            "\n  ul class=pagination\n   li\n    a title=Weiter href=/b\n     i",
            "a[title=\"Weiter\"]",
        ),
        (
            "\n  ul class=pagination\n   li class=active\n    a href=?p=1\n     \"1\"\n   li\n    a href=?p=2\n     \"2\"",
            "ul.pagination > li.active + li a",
        ),
        ("\n  link rel=next href=?page=2", "link[rel~=\"next\"]"),
    ] {
        assert_eq!(found(after).as_deref(), Some(expected), "{after}");
    }
    for after in [
        "\n  nav\n   button aria-label=Go+to+the+next+page",
        "\n  nav\n   a title=Aller+à+la+page+suivante href=/b\n    i",
        "\n  div role=navigation\n   button\n    \"Next\"",
        "\n  div class=pager\n   button\n    \"التالي\"",
    ] {
        assert!(found(after).is_some(), "{after}");
    }
    for text in ["Load more orders", "Mehr anzeigen", "عرض المزيد"] {
        assert!(found(&format!("\n  div\n   button\n    \"{text}\"")).is_some(), "{text}");
    }
    let sign = "\n  ul class=pagination\n   li\n    a href=/b\n     span\n      \"»\"";
    assert!(found(sign).is_some());
    assert!(found("\n  a href=?page=2\n   \"Next page\"").is_some(), "its address says it");
}

#[test]
fn a_link_that_cannot_be_pressed_or_is_about_something_else_says_nothing() {
    for after in [
        "",
        "\n  a rel=next href=?page=2 hidden\n   \"Go\"",
        "\n  ul class=pagination\n   li class=next+disabled\n    a href=#\n     \"»\"",
        "\n  nav\n   button aria-label=Next disabled",
        "\n  a class=page-next\n   \"Go\"",
        "\n  div class=next-appointment\n   a href=/calendar\n    \"Monday\"",
        "\n  button class=slick-next\n   \"Next\"",
        "\n  a href=/details\n   \"→\"",
        "\n  button\n   \"Show more of what you have done on this page before\"",
        "\n  div\n   div\n    div\n     div\n      button\n       \"Show more\"",
        "\n  div class=photo-carousel\n   div\n    a class=next href=#\n     \"›\"",
        "\n  div class=setup-wizard\n   nav\n    button class=btn-next\n     \"Next\"",
        "\n  nav\n   a href=/learn\n    \"Read the next chapter now\"",
        "\n  ul class=pager\n   li class=previous\n    a href=?page=1\n     \"«\"",
    ] {
        assert_eq!(found(after), None, "{after}");
    }
    let in_row = "html\n body\n  table id=orders\n   tr\n    td\n     a rel=next href=/x\n      \"Go\"\n   tr\n    td";
    assert_eq!(further_page(&page(in_row), &rows(), &select), None);
}

#[test]
fn a_list_in_a_page_says_that_it_goes_on_until_its_further_pages_are_read() {
    let mut definition = with_orders();
    let mut state = State::default();
    let mut shown = |definition: &Definition, is_chosen: bool| {
        state.defined(&definition.clone().into(), None);
        if is_chosen {
            assert!(state.goes_on("orders".to_owned(), "a.next".to_owned()));
        }
        state.definition = Some(definition.clone().into());
        let around = Surroundings {
            file: "shop",
            obstacle: None,
            home: None,
            time_zone: None,
            can_probe: false,
        };
        let view = serde_json::to_value(StudioView::of(&state, 1, &around)).unwrap();
        let fields = view["outline"]["fields"].as_array().unwrap();
        let orders = fields.iter().find(|field| field["type"] == "list").unwrap();
        orders["furtherPage"].clone()
    };
    assert_eq!(shown(&definition, false), Value::Null);
    assert_eq!(shown(&definition, true), "a.next");
    set_next_page(&mut definition, "orders", "a.next", 5).unwrap();
    assert_eq!(shown(&definition, false), Value::Null);
}

#[test]
fn a_menu_before_a_list_does_not_hide_what_is_after_it() {
    let links: Vec<_> = (0..60).map(|link| format!("\n   a href=/{link}\n    \"m\"")).collect();
    let links = links.concat();
    let page = |around: &str| {
        page(&format!(
            "html\n body\n  nav{links}\n  div class={around}\n   table id=orders\n    tr\n     td\n    tr\n     \
             td\n   div class=pager\n    button\n     \"Next\""
        ))
    };
    assert!(further_page(&page("content"), &rows(), &select).is_some());
    // The list is in it as well.
    assert!(further_page(&page("tour"), &rows(), &select).is_some());
}
