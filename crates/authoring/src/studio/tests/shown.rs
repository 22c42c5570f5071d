//! The pages that are shown, compared with those that a definition reads.

use domain::workflow::{Definition, Node};
use serde_json::{Value, json};

use crate::{
    draft::{DraftError, KnownValues, NewField, NewList, add_field},
    lists::ListProposal,
    signals::KnownPage,
    studio::{
        Shared, StudioError,
        edits::apply,
        readings::on_page,
        shown::{other_page, paged_lists},
    },
    tests::{changes::with_orders, drafts, page, select, with_text},
};

const BILLS: &str = "html\n body\n  div\n   table id=bills\n    tr\n     td\n      \"A-1\"\n   a class=next\n    \
                     \"bills\"\n  div\n   table id=taxes\n    tr\n     td\n      \"T-1\"\n   a class=next\n    \
                     \"taxes\"";

/// Returns a definition with a list of the page of orders, and with two of the page of bills.
fn with_lists() -> Definition {
    let mut definition = with_orders();
    for name in ["bills", "taxes"] {
        let rows = ListProposal {
            at: format!("#{name}"),
            each: Some("tr".to_owned()),
            member: "td".to_owned(),
            rows: 1,
        };
        let list = NewList { name: name.to_owned(), label: name.to_owned(), rows };
        let column = NewField { list: Some(list), ..drafts::field("number") };
        let source = drafts::on_page("https://shop.example/bills");
        add_field(&mut definition, column, &source, &KnownValues::new()).unwrap();
    }
    definition
}

/// Returns the lists that an element of the page of bills, shown at a path, can lead on.
fn lists(path: &str, text: &str) -> Value {
    let shown = KnownPage { url: format!("https://shop.example{path}"), tree: page(BILLS) };
    let node = with_text(&shown.tree, text);
    let found = paged_lists(&with_lists(), (&shown, node), &KnownValues::new(), &select);
    serde_json::to_value(found).unwrap()
}

#[test]
fn an_element_leads_on_the_nearest_list_of_its_own_page() {
    let here = |name: &str| json!({ "name": name, "isHere": true });
    assert_eq!(lists("/bills", "bills"), json!([here("bills"), here("taxes")]));
    assert_eq!(lists("/bills", "taxes"), json!([here("taxes"), here("bills")]));
    assert_eq!(lists("/orders", "bills"), json!([here("orders")]));
    let other_part = json!([{ "name": "orders", "isHere": false }]);
    assert_eq!(lists("/orders?page=2", "bills"), other_part);
    assert_eq!(lists("/orders/#top", "bills"), json!([here("orders")]));
    assert_eq!(lists("/orders?status=open", "bills"), json!([]));
    assert_eq!(lists("/home", "bills"), json!([]));
}

#[test]
fn an_element_of_another_page_does_not_lead_on_a_list() {
    let shared = Shared::default();
    let [bills, second, first] = ["/bills", "/orders?page=2", "/orders"].map(|path| {
        let url = format!("https://shop.example{path}");
        shared.state().add_inspection(KnownPage { url, tree: page(BILLS) })
    });
    let mut definition = with_lists();
    let before = definition.clone();
    let mut set = |inspection: Option<u64>| {
        let edit = json!({
            "op": "setNextPage", "list": "orders", "selector": "a.next", "max": 10,
            "inspection": inspection,
        });
        definition = before.clone();
        let done = apply(&mut definition, serde_json::from_value(edit).unwrap(), None, &shared);
        (done, definition != before)
    };
    let (refused, is_changed) = set(Some(bills));
    let is_other = matches!(
        &refused,
        Err(StudioError::Draft(DraftError::OtherPage(list))) if list == "orders"
    );
    assert!(is_other && !is_changed, "{refused:?}");
    // What the author has entered by hand is of no inspected page.
    for inspection in [Some(first), Some(second), None] {
        let (done, is_changed) = set(inspection);
        assert!(done.is_ok() && is_changed, "{inspection:?}: {done:?}");
    }
    assert!(matches!(set(Some(99)), (Err(StudioError::NoInspection), false)));
}

#[test]
fn a_field_is_tried_on_its_own_page_alone() {
    let mut definition = with_lists();
    let compared = |definition: &Definition, node: (&str, bool), path: &str| {
        other_page(definition, node, &format!("https://shop.example{path}"), &KnownValues::new())
    };
    let tried =
        |definition: &Definition, node: &str, path: &str| compared(definition, (node, true), path);
    let own = Some("https://shop.example/orders".to_owned());
    assert_eq!(tried(&definition, "readOrders", "/bills"), own);
    assert_eq!(tried(&definition, "readOrders", "/orders/7"), own);
    for path in ["/orders", "/orders?page=2", "/orders/page/2", "/orders?sort=date#top"] {
        assert_eq!(tried(&definition, "readOrders", path), None, "{path}");
    }
    let nothing = |path: &str| compared(&definition, ("readOrders", false), path);
    assert_eq!(nothing("/orders?tab=profile"), own);
    for path in ["/orders", "/orders?page=2", "/orders/", "/orders#top", "/orders/page/2/#top"] {
        assert_eq!(nothing(path), None, "{path}");
    }
    // The definition does not tell where it is read.
    assert_eq!(tried(&definition, "review", "/home"), None);
    let mut filtered = definition.clone();
    for node in filtered.nodes.values_mut() {
        if let Node::Goto { url, .. } = node {
            *url = url.replace("/orders", "/orders/?user={user}&status=open");
        }
    }
    let nothing = |path: &str| compared(&filtered, ("readOrders", false), path).is_some();
    assert!(!nothing("/orders?status=open&user=7"));
    assert!(nothing("/orders?status=closed&user=7"));
    for node in definition.nodes.values_mut() {
        if let Node::Goto { url, .. } = node {
            *url = url.replace("/orders", "/app#/orders/{user}");
        }
    }
    let own = Some("https://shop.example/app#/orders/{user}".to_owned());
    assert_eq!(tried(&definition, "readOrders", "/app#/orders/7"), None);
    assert_eq!(tried(&definition, "readOrders", "/app#/bills/7"), own);
}

#[test]
fn what_is_found_on_another_page_is_shown_with_the_address_of_its_own() {
    let definition = with_lists();
    let tried = json!({ "node": "readOrders", "reading": { "type": "string", "at": "td" } });
    let found = |path: &str| {
        let found = on_page(&page(BILLS), &serde_json::from_value(tried.clone()).unwrap(), &select);
        let url = format!("https://shop.example{path}");
        let found = found.compared(&definition, "readOrders", &url, &KnownValues::new());
        let found = serde_json::to_value(found).unwrap();
        (found["value"].clone(), found["otherPage"].clone())
    };
    assert_eq!(found("/orders"), (json!("A-1"), Value::Null));
    // The site may lead there from the address of the definition.
    let led_on = (json!("A-1"), json!("https://shop.example/orders"));
    assert_eq!(found("/en/orders"), led_on);
}
