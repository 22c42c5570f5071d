//! What tells that a value is read by the position of its element.

use serde_json::{Value, json};

use super::addresses::shown;
use crate::{
    draft::{KnownValues, add_variable, edit_field},
    studio::{Shared, readings::on_page},
    tests::{changes::with_orders, drafts, page, select},
};

#[test]
fn a_place_by_position_says_so_until_it_is_another_one() {
    let mut definition = with_orders();
    let shared = Shared::default();
    let source = drafts::on_page("https://shop.example/orders");
    add_variable(&mut definition, "user", vec![], &source, &KnownValues::new()).unwrap();
    assert_eq!(shown(&definition, &shared, "variables", "user")["positional"], false);
    let mut read_at = |within: Option<&str>, name: &str, at: &str| {
        let change = json!({
            "within": within, "name": name, "newName": name, "label": "L", "required": true,
            "pii": true, "reading": { "type": "string", "at": at },
        });
        edit_field(&mut definition, serde_json::from_value(change).unwrap()).unwrap();
        let field = shown(&definition, &shared, "fields", within.unwrap_or(name));
        let members: Vec<Value> = field["members"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["positional"].clone())
            .collect();
        (field["positional"].clone(), members)
    };
    let (no, yes) = (json!(false), json!(true));
    assert_eq!(read_at(None, "tier", "dd.tier"), (no.clone(), vec![]));
    for at in ["dd:nth-of-type(3)", "dl > :nth-child(2)", "dd:last-of-type"] {
        assert_eq!(read_at(None, "tier", at), (yes.clone(), vec![]), "{at}");
    }
    let second = read_at(Some("orders"), "total", "td:nth-of-type(2)");
    assert_eq!(second, (no.clone(), vec![no.clone(), yes]), "the list itself is not");
    let by_class = read_at(Some("orders"), "total", "td.total");
    assert_eq!(by_class, (no.clone(), vec![no.clone(), no]));
}

#[test]
fn a_place_by_position_says_so_when_it_is_tried() {
    let page = page("html\n body\n  dl\n   dd\n    \"Ada\"\n   dd\n    \"London\"");
    let tried = |at: &str| {
        let tried = json!({ "node": "read", "reading": { "type": "string", "at": at } });
        let seen = on_page(&page, &serde_json::from_value(tried).unwrap(), &select);
        serde_json::to_value(seen).unwrap()["positional"].clone()
    };
    assert_eq!((tried("dd:nth-of-type(2)"), tried("dl")), (json!(true), json!(false)));
}
