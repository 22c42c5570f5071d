//! What tells that a list goes on after the rows that its response has.

use domain::workflow::{Definition, SeenResponse, Source, matches_url, rows_of};
use serde::Serialize;
use serde_json::Value;

use super::{readings::path_pattern, state::State};
use crate::draft::{is_page_name, without_braces};

/// Further parameters of addresses that tell a part of a list from the others, and are no numbers of pages.
const OTHER_PARAMETERS: &[&str] = &["cursor", "first"];
/// Parameters of addresses with the number of a page of a list, without their signs, and with what is before
/// it. The first page has the number 0 or 1.
const NUMBERS: &[&str] = &["p", "page", "pageno", "pagenumber", "pagina", "paginationpage"];
const OFFSETS: &[&str] = &["offset", "pageoffset", "start"];
/// Parameters that are shown at most, and the length of one.
const MAX_PARAMETERS: usize = 3;
const MAX_PARAMETER_CHARS: usize = 40;

/// Objects that say which part of a list a response has. Names are compared without their signs.
const PAGING: &[&str] = &["links", "meta", "metadata", "page", "pageinfo", "pagination", "paging"];
/// Members that lead to the next page, or are null on the last one.
const NEXT: &[&str] = &[
    "next",
    "nextcursor",
    "nextlink",
    "nextoffset",
    "nextpage",
    "nextpagetoken",
    "nexttoken",
    "nexturl",
];
const HAS_MORE: &[&str] = &["hasmore", "hasnext", "hasnextpage"];
const TOTALS: &[&str] = &["totalcount", "totalelements", "totalitems", "totalresults", "totalrows"];
/// Totals only in or beside what is about pages: they may also be an amount, or count something else.
const MAYBE_TOTALS: &[&str] = &["count", "total"];
/// Members beside which these are totals.
const BESIDE_TOTALS: &[&str] = &[
    "currentpage",
    "limit",
    "offset",
    "page",
    "pagecount",
    "pages",
    "pagesize",
    "perpage",
    "prev",
    "previous",
];
/// How deep the objects around a list are searched, and how many members of them are looked at.
const MAX_DEPTH: usize = 4;
const MAX_MEMBERS: usize = 2000;
/// Members of a link that are looked at.
const MAX_LINK_MEMBERS: usize = 20;
/// The length of a place that is shown.
const MAX_PLACE_CHARS: usize = 200;

/// What tells that a list may have more rows than its response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Paging {
    /// The rows of the response; `None` if no response is known.
    rows: Option<usize>,
    /// The rows that there are in all, if the response says so.
    total: Option<u64>,
    /// The JSON pointer of the member of the response that says that there are more rows; `None` if none
    /// does.
    sign: Option<String>,
    /// What the address says of the part of the list, such as `page_size=10`.
    parameters: Vec<String>,
}

impl Paging {
    /// Returns what a response, whose list is at a JSON pointer, tells of further rows. `None` if it tells
    /// nothing.
    pub(super) fn of_response(response: &SeenResponse, at: &str) -> Option<Self> {
        let body = response.body.as_ref()?;
        let rows = rows_of(body.pointer(at)?)?.len();
        let parameters = page_parameters(&response.url);
        let mut search = Search {
            rows,
            is_paged: !parameters.is_empty(),
            left: MAX_MEMBERS,
            sign: None,
            total: None,
        };
        search.around(body, at);
        let (sign, total) = (search.sign, search.total);
        let sign = sign.map(|sign| shown(&sign, MAX_PLACE_CHARS));
        let is_told = sign.is_some() || !parameters.is_empty();
        is_told.then_some(Self { rows: Some(rows), total, sign, parameters })
    }

    /// Returns whether the list is known to have more rows than this.
    pub(super) fn exceeds(&self, max: usize) -> bool {
        let max_total = u64::try_from(max).unwrap_or(u64::MAX);
        self.rows.is_some_and(|rows| rows > max) || self.total.is_some_and(|rows| rows > max_total)
    }

    /// Returns what is known of further rows of a list that is read at a JSON pointer of a response: by its
    /// newest one, or else by the address of its request. The page itself may ask for other rows: only where
    /// values stand in the address of a request is a response with its path taken for one of it. `None` if
    /// nothing tells of further rows, or if the list is read in the page.
    pub(super) fn of_list(
        definition: &Definition,
        state: &State,
        via: &Source,
        at: &str,
    ) -> Option<Self> {
        let (pattern, url) = match via {
            Source::Dom {} => return None,
            Source::Response(pattern) => (pattern.clone(), None),
            Source::Fetch(name) => {
                let url = &definition.requests.get(name)?.url;
                (path_pattern(url), Some(url))
            }
        };
        let has_list = |response: &&SeenResponse| {
            let list = response.body.as_ref().and_then(|body| body.pointer(at));
            (200..=299).contains(&response.status)
                && matches_url(&pattern, &response.url)
                && list.is_some_and(Value::is_array)
        };
        let fixed = url.filter(|url| !url.contains('{')).and_then(|url| url::Url::parse(url).ok());
        let is_read = |response: &&SeenResponse| {
            let seen = || url::Url::parse(&without_braces(&response.url)).ok();
            fixed.is_none() || fixed == seen()
        };
        let mut newest_first = state.responses.newest_first().filter(has_list);
        if let Some(response) = newest_first.find(is_read) {
            return Self::of_response(response, at);
        }
        let parameters = page_parameters(url?);
        (!parameters.is_empty()).then(|| Self { parameters, ..Self::default() })
    }
}

/// A search for members that say that there are more rows.
struct Search {
    /// The rows of the list.
    rows: usize,
    /// Whether the address tells a part of the list from the others.
    is_paged: bool,
    /// The members that may still be looked at.
    left: usize,
    sign: Option<String>,
    total: Option<u64>,
}

impl Search {
    /// Looks at the objects that the list is in, the nearest one first. What is around an array is about its
    /// items, not about a list in one of them.
    fn around(&mut self, body: &Value, at: &str) {
        let ends: Vec<_> = at.match_indices('/').map(|(end, _)| end).collect();
        for end in ends.into_iter().rev().take(MAX_DEPTH) {
            let Some(pointer) = at.get(..end) else { continue };
            let Some(around) = body.pointer(pointer).filter(|around| around.is_object()) else {
                return;
            };
            self.object(around, pointer, 0);
        }
    }

    /// Looks at the members of an object around the list, or, with a `depth` from 1, of one in it that is
    /// about pages.
    fn object(&mut self, object: &Value, pointer: &str, depth: usize) {
        let Some(members) = object.as_object().filter(|_| depth <= MAX_DEPTH) else { return };
        let names = members.keys().take(self.left).map(|name| plain(name));
        let is_beside = |name: String| {
            let name = name.as_str();
            [BESIDE_TOTALS, NEXT, HAS_MORE, TOTALS].iter().any(|names| names.contains(&name))
        };
        let is_paged = self.is_paged || depth > 0 || names.into_iter().any(is_beside);
        for (name, value) in members {
            if self.left == 0 {
                return;
            }
            self.left = self.left.saturating_sub(1);
            let place = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            let name = plain(name);
            let name = name.as_str();
            let is_total = TOTALS.contains(&name) || (is_paged && MAYBE_TOTALS.contains(&name));
            let has_more = HAS_MORE.contains(&name) && *value == Value::Bool(true);
            if has_more || (NEXT.contains(&name) && leads_on(value)) {
                self.sign.get_or_insert(place);
            } else if is_total {
                self.count(value, place);
            } else if PAGING.contains(&name) {
                self.object(value, &place, depth.saturating_add(1));
            }
        }
    }

    /// Takes over a number of rows if it is greater than that of the list.
    fn count(&mut self, value: &Value, place: String) {
        let rows = u64::try_from(self.rows).unwrap_or(u64::MAX);
        if let Some(total) = value.as_u64().filter(|total| *total > rows) {
            self.total.get_or_insert(total);
            self.sign.get_or_insert(place);
        }
    }
}

/// Returns whether the value of a member for the next page is one of a page that exists.
fn leads_on(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_there) => *is_there,
        Value::Number(number) => number.as_f64().is_some_and(|number| number > 0.0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        // Such as a link.
        Value::Object(members) => members
            .values()
            .take(MAX_LINK_MEMBERS)
            .any(|value| !value.is_object() && leads_on(value)),
    }
}

/// Returns a name without its signs and in lower case.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Returns what an address says of the part of a list that its response has.
fn page_parameters(url: &str) -> Vec<String> {
    let Ok(url) = url::Url::parse(url) else { return vec![] };
    let is_of_pages =
        |name: &str| is_page_name(name) || OTHER_PARAMETERS.contains(&plain(name).as_str());
    let of_pages = url.query_pairs().filter(|(name, _)| is_of_pages(name));
    let parameters = of_pages.take(MAX_PARAMETERS);
    parameters.map(|(name, value)| shown(&format!("{name}={value}"), MAX_PARAMETER_CHARS)).collect()
}

/// Returns what an address says if its page is not the first one of a list, such as `page=2`.
pub(super) fn later_page(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    let is_later = |name: &str, value: &str| {
        let (name, number) = (plain(name), value.parse::<u32>().unwrap_or_default());
        let name = name.as_str();
        (NUMBERS.contains(&name) && number > 1) || (OFFSETS.contains(&name) && number > 0)
    };
    let parameter = url.query_pairs().find(|(name, value)| is_later(name, value));
    let parameter = parameter.map(|(name, value)| format!("{name}={value}"));
    let in_path = || {
        let segments: Vec<_> = url.path_segments()?.collect();
        let mut pairs = segments.iter().zip(segments.iter().skip(1));
        // There, `p` may also be that of a product.
        let (name, value) = pairs.find(|(name, value)| *name != &"p" && is_later(name, value))?;
        Some(format!("{name}/{value}"))
    };
    parameter.or_else(in_path).map(|text| shown(&text, MAX_PARAMETER_CHARS))
}

/// Returns an address, as a definition or a browser has it, without what says which page of a list is wanted.
pub(super) fn without_page(url: &str) -> String {
    let (url, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let is_of_page = |name: &str| {
        let plain = plain(name);
        let plain = plain.as_str();
        is_page_name(name)
            || [NUMBERS, OFFSETS, OTHER_PARAMETERS].iter().any(|names| names.contains(&plain))
    };
    let others = query.split('&').filter(|parameter| {
        let name = parameter.split_once('=').map_or(*parameter, |(name, _)| name);
        !parameter.is_empty() && !is_of_page(name)
    });
    let others: Vec<_> = others.collect();
    let mut segments: Vec<_> = path.split('/').collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let in_path = segments.windows(2).position(|pair| match pair {
        // There, `p` may also be that of a product.
        [name, value] => {
            *name != "p" && NUMBERS.contains(&plain(name).as_str()) && is_number(value)
        }
        _ => false,
    });
    if let Some(at) = in_path {
        segments.drain(at..at.saturating_add(2));
    }
    let start = if others.is_empty() { "" } else { "?" };
    format!("{}{start}{}{fragment}", segments.join("/"), others.join("&"))
}

/// Returns the beginning of a text that is shown as code: without the signs between which code stands.
fn shown(text: &str, max_chars: usize) -> String {
    text.chars().filter(|c| *c != '`').take(max_chars).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(url: &str, body: &Value, at: &str) -> Option<Paging> {
        let response = SeenResponse {
            number: 1,
            url: format!("https://shop.test{url}"),
            status: 200,
            body: Some(body.clone()),
            ..SeenResponse::default()
        };
        Paging::of_response(&response, at)
    }

    #[test]
    fn an_address_says_that_its_page_is_not_the_first() {
        let told = |rest: &str| later_page(&format!("https://shop.test/orders{rest}"));
        for (rest, expected) in [
            ("?page=2", "page=2"),
            ("?sort=id&page[number]=3", "page[number]=3"),
            ("/page/4/", "page/4"),
            ("?offset=25", "offset=25"),
        ] {
            assert_eq!(told(rest).as_deref(), Some(expected), "{rest}");
        }
        for rest in
            ["", "?page=1", "?page=0", "?page=all", "?offset=0", "/2024/5", "?limit=50", "/p/4711"]
        {
            assert_eq!(told(rest), None, "{rest}");
        }
        let long = told(&format!("?page={}2", "0".repeat(60))).unwrap();
        assert_eq!(long.chars().count(), MAX_PARAMETER_CHARS);
    }

    #[test]
    fn an_address_is_the_same_on_each_page_of_a_list() {
        let url = "https://shop.test/orders";
        for rest in ["", "?page=2", "?p=3", "?page%5Bnumber%5D=2&offset=50", "/page/4"] {
            assert_eq!(without_page(&format!("{url}{rest}")), url, "{rest}");
        }
        for (rest, expected) in [
            ("?status=open&page=2#top", "?status=open#top"),
            ("/page/2/?status=open", "/?status=open"),
            ("/{user}?page={page}", "/{user}"),
            ("/p/4711", "/p/4711"),
            ("?q=page", "?q=page"),
        ] {
            let expected = format!("{url}{expected}");
            assert_eq!(without_page(&format!("{url}{rest}")), expected, "{rest}");
        }
    }

    /// Returns where a response with two rows says that there are more, and how many there are.
    fn sign(body: &Value, at: &str) -> Option<(String, Option<u64>)> {
        let told = told("/orders", body, at)?;
        assert_eq!(told.rows, Some(2));
        told.sign.map(|sign| (sign, told.total))
    }

    #[test]
    fn a_response_says_in_usual_ways_that_there_are_more_rows() {
        let rows = || json!([{ "id": 1 }, { "id": 2 }]);
        let pages = |next: Value| json!({ "pagination": { "page": 1, "pages": 2, "next": next } });
        for (body, at, expected) in [
            (json!({ "data": rows(), "meta": pages(json!(2)) }), "/data", "/meta/pagination/next"),
            (
                json!({ "results": rows(), "next": "https://shop.test/orders?page=2", "previous": null }),
                "/results",
                "/next",
            ),
            (json!({ "data": rows(), "has_more": true }), "/data", "/has_more"),
            (
                json!({ "data": rows(), "links": { "next": { "href": "/orders?page=2" } } }),
                "/data",
                "/links/next",
            ),
            (
                json!({ "_embedded": { "orders": rows() }, "_links": { "next": { "href": "/o" } } }),
                "/_embedded/orders",
                "/_links/next",
            ),
            (
                json!({ "data": { "orders": { "nodes": rows(), "pageInfo": { "hasNextPage": true, "endCursor": "x" } } } }),
                "/data/orders/nodes",
                "/data/orders/pageInfo/hasNextPage",
            ),
            (json!({ "items": rows(), "nextPageToken": "abc" }), "/items", "/nextPageToken"),
            (
                json!({ "a/b": rows(), "pa/ging": { "next_cursor": "x" } }),
                "/a~1b",
                "/pa~1ging/next_cursor",
            ),
        ] {
            assert_eq!(sign(&body, at), Some((expected.to_owned(), None)), "{body}");
        }
        for (body, at, expected, total) in [
            (
                json!({ "data": rows(), "meta": { "total": 37, "per_page": 2 } }),
                "/data",
                "/meta/total",
                37,
            ),
            (
                json!({ "results": rows(), "count": 37, "next": null, "previous": null }),
                "/results",
                "/count",
                37,
            ),
            (json!({ "orders": rows(), "totalCount": 3 }), "/orders", "/totalCount", 3),
            (
                json!({ "content": rows(), "page": { "totalElements": 9 } }),
                "/content",
                "/page/totalElements",
                9,
            ),
        ] {
            assert_eq!(sign(&body, at), Some((expected.to_owned(), Some(total))), "{body}");
        }
        let quoted = json!({ "data": rows(), "`next`": 2 });
        assert_eq!(sign(&quoted, "/data"), Some(("/next".to_owned(), None)));
        let both = json!({ "data": rows(), "meta": { "next": 2, "total": 37 } });
        assert_eq!(sign(&both, "/data"), Some(("/meta/next".to_owned(), Some(37))));
    }

    #[test]
    fn a_response_with_all_rows_says_nothing() {
        let rows = || json!([{ "id": 1 }, { "id": 2 }]);
        for body in [
            json!({ "rows": rows() }),
            json!({ "rows": rows(), "meta": { "next": null, "total": 2, "count": 2 } }),
            json!({ "rows": rows(), "links": { "next": { "href": "" } }, "has_more": false }),
            json!({ "rows": rows(), "pageInfo": { "hasNextPage": false, "endCursor": "x" } }),
            json!({ "rows": rows(), "nextPage": 0, "nextCursor": "" }),
            // An amount, and what is about something else.
            json!({ "rows": rows(), "total": 125, "count": 3 }),
            json!({ "rows": rows(), "appointment": { "next": "2026-12-24" } }),
            json!({ "rows": rows(), "total": "37", "page": 1 }),
        ] {
            assert_eq!(told("/orders", &body, "/rows"), None, "{body}");
        }
        let order = json!({ "id": 1, "rows": rows() });
        let body = json!({ "orders": [order], "meta": { "next": 2, "total": 37 } });
        assert_eq!(told("/orders", &body, "/orders/0/rows"), None, "of the orders");
        assert_eq!(told("/orders", &rows(), ""), None);
        assert_eq!(told("/orders", &json!({ "rows": 1 }), "/rows"), None);
        let body = json!({ "rows": rows(), "total": 125 });
        let paged = told("/orders?limit=2", &body, "/rows").unwrap();
        assert_eq!((paged.total, paged.parameters), (Some(125), vec!["limit=2".to_owned()]));
        for parameter in ["page[limit]=2", "page%5Bnumber%5D=1", "pagination.page=1"] {
            let told = told(&format!("/orders?{parameter}"), &rows(), "");
            assert!(told.is_some(), "{parameter}");
        }
        let told = told("/orders?limit=2", &rows(), "").unwrap();
        assert_eq!((told.rows, told.sign), (Some(2), None));
    }

    #[test]
    fn the_search_for_more_rows_is_bounded() {
        let within =
            |deep: Value, depth: usize| (0..depth).fold(deep, |inner, _| json!({ "meta": inner }));
        let at_depth = |depth: usize| {
            let mut body = within(json!({ "next": 2 }), depth);
            body["rows"] = json!([1, 2]);
            told("/orders", &body, "/rows").is_some()
        };
        assert!(at_depth(4));
        assert!(!at_depth(5));
        let many: serde_json::Map<_, _> =
            (0..3000).map(|number| (format!("a{number}"), json!(1))).collect();
        let mut body = Value::Object(many);
        body["rows"] = json!([1, 2]);
        body["next"] = json!(2);
        assert_eq!(told("/orders", &body, "/rows"), None);
    }
}
