//! The orders of the shop's customers, the newest first, in pages.

use chrono::{Days, NaiveDate};
use serde_json::{Value, json};

use crate::accounts::User;

const ORDERS_PER_PAGE: u32 = 3;
/// The number before that of the first order.
const NUMBERS_FROM: u32 = 1000;
const NEWEST: Option<NaiveDate> = NaiveDate::from_ymd_opt(2026, 10, 21);

const fn count(user: User) -> u32 {
    match user {
        User::Ok | User::Otp | User::Denied => 7,
        User::Empty => 0,
        User::Many => 250,
    }
}

/// Returns the orders before the one that a cursor names, or the newest ones; `None` if there is no
/// such order.
pub(super) fn page(user: User, cursor: &str) -> Option<Value> {
    let count = count(user);
    let newest = if cursor.is_empty() {
        count
    } else {
        let before = cursor.strip_prefix("before-")?.parse::<u32>().ok()?;
        let newest = before.checked_sub(NUMBERS_FROM)?.checked_sub(1)?;
        (newest < count).then_some(newest)?
    };
    let oldest = newest.saturating_sub(ORDERS_PER_PAGE).saturating_add(1).max(1);
    let orders: Option<Vec<_>> =
        (oldest..=newest).rev().map(|number| order(number, count - number)).collect();
    let next = (oldest > 1).then(|| format!("before-{}", NUMBERS_FROM + oldest));
    Some(json!({ "orders": orders?, "next": next }))
}

/// Returns an order by its number and the number of those after it.
fn order(number: u32, age: u32) -> Option<Value> {
    let placed = NEWEST?.checked_sub_days(Days::new(u64::from(age) * 9))?;
    let cents = 1995 + 1230 * age;
    let status = match age % 7 {
        0 => "shipped",
        4 => "returned",
        _ => "delivered",
    };
    Some(json!({
        "number": format!("S-{}", NUMBERS_FROM + number),
        "placedOn": placed.format("%d/%m/%Y").to_string(),
        "items": 1 + age % 4,
        "total": { "amount": f64::from(cents) / 100.0, "currency": "EUR" },
        "status": status,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_leads_through_all_orders_once() {
        for (user, count, pages) in [(User::Ok, 7, 3), (User::Empty, 0, 1), (User::Many, 250, 84)] {
            let (mut cursor, mut numbers, mut read) = (String::new(), vec![], 0);
            loop {
                let page = page(user, &cursor).unwrap();
                let orders = page["orders"].as_array().unwrap().iter();
                numbers.extend(orders.map(|order| order["number"].as_str().unwrap().to_owned()));
                read += 1;
                match page["next"].as_str() {
                    Some(next) => next.clone_into(&mut cursor),
                    None => break,
                }
            }
            let expected: Vec<_> =
                (1..=count).rev().map(|number| format!("S-{}", 1000 + number)).collect();
            assert_eq!((numbers, read), (expected, pages), "{user:?}");
        }
    }

    #[test]
    fn a_cursor_that_the_shop_did_not_give_is_refused() {
        for cursor in ["before-", "before-1000", "before-1009", "before-0", "1005", "before--5"] {
            assert_eq!(page(User::Ok, cursor), None, "{cursor}");
        }
    }
}
