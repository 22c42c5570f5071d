//! Tests of the parts of addresses.

use super::*;

const MEMBERSHIP: &str = "https://shop.example/api/organizations/1/memberships/1?page=1";

fn values(pairs: &[(&str, &str)]) -> KnownValues {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn value(name: &str) -> PartChoice {
    PartChoice::Value(name.to_owned())
}

#[test]
fn a_value_takes_the_place_of_a_whole_part() {
    let known = values(&[("user", "ada l"), ("id", "5"), ("mail", "a+b@c.example")]);
    for (url, expected) in [
        ("https://a.test/users/5", "https://a.test/users/{id}"),
        ("https://a.test/users/5/", "https://a.test/users/{id}/"),
        ("https://a.test/x?a=5&5=b", "https://a.test/x?a={id}&5=b"),
        ("https://a.test/x?5", "https://a.test/x?{id}"),
        ("https://a.test/ada%20l?q=z", "https://a.test/{user}?q=z"),
        ("https://a.test/x?u=ada+l", "https://a.test/x?u={user}"),
        ("https://a.test/a+b@c.example", "https://a.test/{mail}"),
        ("https://a.test/x?m=a%2Bb%40c.example", "https://a.test/x?m={mail}"),
        ("https://a.test/users/55", "https://a.test/users/55"),
        ("https://5", "https://5"),
        ("https://a.test", "https://a.test"),
        ("https://a.test/app#/users/5?tab=6", "https://a.test/app#/users/{id}?tab=6"),
        ("https://a.test/app#5", "https://a.test/app#5"),
        (
            "{customOrigin}/users/5?to=https://a.test/x",
            "{customOrigin}/users/{id}?to=https://a.test/x",
        ),
        ("{customUrl}", "{customUrl}"),
    ] {
        assert_eq!(with_proposals(url, &known).unwrap(), expected);
        let pieces = pieces(url).into_iter().map(|piece| match piece {
            Piece::Part { text, .. } | Piece::Between(text) => text,
        });
        assert_eq!(pieces.collect::<String>(), url);
    }
}

#[test]
fn nothing_is_assumed_where_more_than_one_choice_is_possible() {
    let both = values(&[("organization", "1"), ("user", "1")]);
    let one = values(&[("user", "1")]);
    for (url, known) in [
        (MEMBERSHIP, &both),
        (MEMBERSHIP, &one),
        ("https://a.test/users/1", &both),
        ("https://a.test/users/1?other=1", &one),
    ] {
        let error = with_proposals(url, known).unwrap_err();
        assert!(matches!(error, DraftError::PartUndecided(_)), "{url}: {error}");
    }
    let error = with_proposals("https://a.test/users/1", &both).unwrap_err();
    assert!(error.to_string().contains("`…/users/1`"), "{error}");
    let as_it_is = || Some(PartChoice::AsItIs);
    let parts = vec![
        as_it_is(),
        as_it_is(),
        Some(value("organization")),
        as_it_is(),
        Some(value("user")),
        as_it_is(),
    ];
    let choice = AddressChoice { url: MEMBERSHIP.to_owned(), parts };
    assert_eq!(
        choice.apply(MEMBERSHIP, &both, &both).unwrap(),
        "https://shop.example/api/organizations/{organization}/memberships/{user}?page=1"
    );
    let changed = choice.apply("https://shop.example/api", &both, &both);
    assert_eq!(changed, Err(DraftError::AddressChanged));
}

#[test]
fn only_a_value_that_equals_a_part_is_chosen_for_it() {
    let known = values(&[("user", "1"), ("other", "2")]);
    let url = "https://a.test/users/1";
    let apply = |parts: Vec<Option<PartChoice>>| {
        AddressChoice { url: url.to_owned(), parts }.apply(url, &known, &known)
    };
    let literal = || Some(PartChoice::AsItIs);
    assert_eq!(apply(vec![literal(), Some(value("user"))]).unwrap(), "https://a.test/users/{user}");
    assert_eq!(apply(vec![literal(), literal()]).unwrap(), url);
    for wrong in ["other", "none", "user}/{user"] {
        let refused = apply(vec![literal(), Some(value(wrong))]);
        assert!(matches!(refused, Err(DraftError::OtherValue { .. })), "{wrong}");
    }
    let undecided = apply(vec![literal(), None]);
    assert_eq!(undecided, Err(DraftError::PartUndecided("…/users/1".to_owned())));
    for count in [0, 1, 3, 1000] {
        assert_eq!(apply(vec![literal(); count]), Err(DraftError::AddressChanged));
    }
    let long = format!("https://a.test{}", "/x".repeat(65));
    assert_eq!(with_proposals(&long, &known), Err(DraftError::TooManyParts));
}

#[test]
fn no_values_are_looked_for_in_an_address_that_no_definition_can_have() {
    // The site chooses the address: each of its numbers would be compared with all that is before it.
    let known = values(&[("user", "1")]);
    let address = |numbers: usize| format!("https://a.test/x?page={}2", "1,".repeat(numbers));
    assert_eq!(address(1012).len(), 2047);
    assert!(address_parts(&address(1012), &known, &known).is_ok());
    for numbers in [1013, 100_000] {
        let refused = address_parts(&address(numbers), &known, &known);
        assert_eq!(refused, Err(DraftError::AddressTooLong));
    }
}

#[test]
fn an_address_of_the_definition_is_changed_part_by_part() {
    let offered = values(&[("organization", "1 a")]);
    let read = values(&[("organization", "1 a"), ("user", "1 a")]);
    let url = "https://a.test/orgs/{user}/{unread}/user{user}?page={page}#/users/{user}";
    let parts = address_parts(url, &offered, &read).unwrap();
    let places: Vec<_> = parts.iter().map(|part| part.values.clone()).collect();
    assert_eq!(
        places,
        [
            names(&[]),
            names(&["organization", "user"]),
            names(&["unread"]),
            names(&["organization", "user"]),
            names(&["page"]),
            names(&[]),
            names(&["organization", "user"]),
        ]
    );
    let mut choice = AddressChoice {
        url: url.to_owned(),
        parts: parts.into_iter().map(|part| part.choice).collect(),
    };
    assert_eq!(choice.apply(url, &offered, &read).unwrap(), url);
    choice.parts[1] = Some(value("organization"));
    let changed = choice.apply(url, &offered, &read).unwrap();
    assert_eq!(changed, url.replacen("{user}", "{organization}", 1));
    choice.parts[1] = Some(PartChoice::AsItIs);
    let changed = choice.apply(url, &offered, &read).unwrap();
    assert_eq!(changed, url.replacen("{user}", "1%20a", 1));
    choice.parts[3] = Some(PartChoice::AsItIs);
    let changed = choice.apply(url, &offered, &read).unwrap();
    assert!(changed.starts_with("https://a.test/orgs/1%20a/{unread}/user1%20a?"), "{changed}");
    choice.parts[3] = Some(value("organization"));
    let changed = choice.apply(url, &offered, &read).unwrap();
    assert!(changed.contains("/user{organization}?"), "{changed}");
    choice.parts[2] = Some(PartChoice::AsItIs);
    let unread = choice.apply(url, &offered, &read);
    assert_eq!(unread, Err(DraftError::PartUnread("…/{user}/{unread}".to_owned())));
}

#[test]
fn the_number_of_a_page_is_no_value_unless_the_author_says_so() {
    let known = values(&[("user", "1"), ("long", "12345")]);
    for (url, expected) in [
        ("https://a.test/orders?page=1", "https://a.test/orders?page=1"),
        ("https://a.test/users/1?per_page=1", "https://a.test/users/{user}?per_page=1"),
        ("https://a.test/app#/orders?offset=1", "https://a.test/app#/orders?offset=1"),
        ("https://a.test/orders?page[number]=1", "https://a.test/orders?page[number]=1"),
        ("https://a.test/x?page%5Bsize%5D=1", "https://a.test/x?page%5Bsize%5D=1"),
        ("https://a.test/x?pagination.page=1", "https://a.test/x?pagination.page=1"),
        ("https://a.test/x?page[user]=1", "https://a.test/x?page[user]={user}"),
        ("https://a.test/orders?account=1", "https://a.test/orders?account={user}"),
        ("https://a.test/orders?start=12345", "https://a.test/orders?start={long}"),
    ] {
        assert_eq!(with_proposals(url, &known).unwrap(), expected);
    }
    let url = "https://a.test/orders?page=1";
    let proposed = proposed_parts(url, &known, &known).unwrap();
    assert_eq!(proposed[1].values, names(&["user"]));
    let parts = vec![Some(PartChoice::AsItIs), Some(value("user"))];
    let choice = AddressChoice { url: url.to_owned(), parts };
    let chosen = choice.apply(url, &known, &known).unwrap();
    assert_eq!(chosen, "https://a.test/orders?page={user}");
}

#[test]
fn an_address_of_a_definition_can_be_another_one_in_its_values_alone() {
    let known = values(&[("user", "ada l")]);
    for (own, shown, expected) in [
        ("https://a.test/orders", "https://a.test/orders", true),
        ("https://a.test/orders", "https://a.test/invoices", false),
        ("https://a.test/orders", "https://b.test/orders", false),
        ("https://a.test/orders", "https://a.test/orders/1", false),
        ("https://a.test/orders", "https://a.test/orders?state=open", false),
        ("https://a.test/app#/orders", "https://a.test/app#/invoices", false),
        ("https://a.test/x?state=open", "https://a.test/x?state=closed", false),
        ("https://a.test/x?page=1", "https://a.test/x?page=2", true),
        ("https://a.test/x?page=1", "https://a.test/x?user=1", false),
        ("https://a.test/{user}/orders", "https://a.test/ada%20l/orders", true),
        ("https://a.test/{user}/orders", "https://a.test/bob/orders", false),
        ("https://a.test/{unread}/orders", "https://a.test/bob/orders", true),
        ("https://a.test/user{id}.json", "https://a.test/user5.json", true),
        ("https://a.test/user{id}.json", "https://a.test/order5.json", false),
        ("https://a.test/user{id}.json", "https://a.test/user5.xml", false),
        ("https://a.test/x?f=u:{user},t:1", "https://a.test/x?f=u%3Aada+l%2Ct%3A1", true),
        ("https://a.test/x?f=u:{user},t:1", "https://a.test/x?f=u:bob,t:1", false),
        ("https://a.test/x?f=u:{user},t:{unread}", "https://a.test/x?f=u:ada+l,t:7", true),
        ("https://a.test/x?f=u:{user},t:{unread}", "https://a.test/x?f=u:bob,t:7", false),
        ("https://a.test/x?f={a}-{b}-{c}", "https://a.test/x?f=1-2-3", true),
        ("https://a.test/x?f={a}-{b}-{c}", "https://a.test/x?f=1-2", false),
        ("{customUrl}", "https://a.test/users/5", true),
        ("{customOrigin}/api/orders", "https://a.test/api/orders", true),
        ("{customOrigin}/api/orders", "https://a.test/api/invoices", false),
    ] {
        assert_eq!(can_be(own, shown, &known), expected, "{own} {shown}");
    }
}

#[test]
fn parts_that_may_be_the_accounts_own_are_told() {
    let read = values(&[("name", "ada")]);
    let own = |url: &str| {
        let parts = address_parts(url, &KnownValues::new(), &read).unwrap();
        let own: Vec<_> = parts.into_iter().filter(AddressPart::stays_own).collect();
        own.into_iter().map(|part| part.place).collect::<Vec<_>>().join(" ")
    };
    for (url, expected) in [
        ("https://a.test/api/v1/users/7", "…/users/7"),
        (
            "https://a.test/u/0197b3a0-5c1e-7c3e-9b0a-4f1de2a3b4c5",
            "…/u/0197b3a0-5c1e-7c3e-9b0a-4f1de2a3b4c5",
        ),
        ("https://a.test/u/deadbeefdeadbeef", "…/u/deadbeefdeadbeef"),
        ("https://a.test/u/cus_N1x2abC", "…/u/cus_N1x2abC"),
        ("https://a.test/x?m=a%40b.example", "m=a@b.example"),
        ("https://a.test/ada/settings", "/ada"),
        ("https://a.test/x?account=25&limit=25&@pagesize=10&per_page=50&page=1", "account=25"),
        ("https://a.test/x?page=12345", "page=12345"),
        ("https://a.test/x?page[limit]=25&page[number]=2&page%5Bsize%5D=10", ""),
        ("https://a.test/x?pagination.page=1&pageNo=2&pagination%5Bpage_size%5D=10", ""),
        ("https://a.test/x?number=25", "number=25"),
        ("https://a.test/x?filter%5Bnumber%5D=25", "filter[number]=25"),
        ("https://a.test/x?page%5Baccount%5D=25", "page[account]=25"),
        ("https://a.test/app#/users/7", "…/users/7"),
        ("https://a.test/app#7", ""),
        ("https://a.test/api/v2/oauth2/settings?sort=number&tab=profile", ""),
        ("https://a.test/users/{name}/user{name}", ""),
        ("https://a.test/x?f=authors:ada", "f=authors:ada"),
        ("https://a.test/x?f=authors:adam,day:1", "f=authors:adam,day:1"),
        ("https://a.test/x?f=authors:adam", ""),
        ("https://a.test/x?f=id:7", "f=id:7"),
        ("https://a.test/x?ids=4,5", "ids=4,5"),
        ("https://a.test/x?f=limit:25,page:1", ""),
        ("https://a.test/x?range=0-24&limit=10,25", ""),
        ("https://a.test/x?f=mail:a%40b.example,open", "f=mail:a@b.example,open"),
        ("https://a.test/x?f=of:cus_N1x2abC", "f=of:cus_N1x2abC"),
        (
            "https://a.test/x?f=0197b3a0-5c1e-7c3e-9b0a-4f1de2a3b4c5:open",
            "f=0197b3a0-5c1e-7c3e-9b0a-4f1de2a3b4c5:open",
        ),
        ("https://a.test/48213-orders/step-2", "/48213-orders"),
        ("https://a.test/x?from=2026-11-24&to=24/11/2026&at=2026-11-24T10:05:24Z", ""),
        ("https://a.test/x?from=20261124&to=20261124T120000Z&f=day:20261124-20261130", ""),
        ("https://a.test/20261124/20261124T1200?at=20261124T120000", ""),
        ("https://a.test/x?user=20261324", "user=20261324"),
        ("https://a.test/x?user=20261132", "user=20261132"),
        ("https://a.test/x?user=48261124", "user=48261124"),
        ("https://a.test/x?user=202611245", "user=202611245"),
        ("https://a.test/x?user=20261124T99", "user=20261124T99"),
        ("https://a.test/x?user=20261124T1260", "user=20261124T1260"),
        ("https://a.test/x?v=1.2.3&f=since:2026-11,build:v1.20", ""),
        ("https://a.test/x?ids={name},7", "ids={name},7"),
        ("https://a.test/x?ids={name},open", ""),
        ("{customOrigin}/api/me", ""),
    ] {
        assert_eq!(own(url), expected, "{url}");
    }
}

#[test]
fn a_date_that_equals_what_was_read_may_be_the_accounts_own() {
    let url = "https://a.test/x?born=18701124&since=20261124";
    let own = |read: &KnownValues| {
        let parts = address_parts(url, &KnownValues::new(), read).unwrap();
        parts.iter().map(AddressPart::stays_own).collect::<Vec<_>>()
    };
    assert_eq!(own(&KnownValues::new()), [false, true, false]);
    assert_eq!(own(&values(&[("since", "20261124")])), [false, true, true]);
}

#[test]
fn braces_of_a_site_are_no_names() {
    let url = without_braces("https://a.test/x?filter={user}");
    let known = values(&[("user", "1")]);
    assert_eq!(with_proposals(&url, &known).unwrap(), "https://a.test/x?filter=%7Buser%7D");
}

/// A filter of a blog, with the name of an author.
const FILTER: &str = "https://a.test/api/posts/?filter=status%3Apublished%2Bauthors%3Aada&limit=30";
const UUID: &str = "0197b3a0-5c1e-7c3e-9b0a-4f1de2a3b4c5";

#[test]
fn a_value_takes_the_place_of_a_word_within_a_part() {
    let mut known = values(&[("slug", "ada"), ("mail", "a+b@c.example"), ("id", "7")]);
    known.extend(values(&[("key", UUID), ("full", "bob l"), ("lang", "de")]));
    let uuid = format!("https://a.test/x?q=of:{UUID};open");
    for (url, expected) in [
        (FILTER, &*FILTER.replace("ada", "{slug}")),
        ("https://a.test/x?q=a:ada+open", "https://a.test/x?q=a:{slug}+open"),
        ("https://a.test/x?q=a+ada%20open", "https://a.test/x?q=a+{slug}%20open"),
        ("https://a.test/x?q=a%253Aada", "https://a.test/x?q=a%253A{slug}"),
        (
            "https://a.test/x?q=%7B%22a%22:%22ada%22%7D",
            "https://a.test/x?q=%7B%22a%22:%22{slug}%22%7D",
        ),
        ("https://a.test/x?q=name:bob+l,open", "https://a.test/x?q=name:{full},open"),
        ("https://a.test/x?q=m:a%2Bb%40c.example;x", "https://a.test/x?q=m:{mail};x"),
        ("https://a.test/m:a+b@c.example", "https://a.test/m:{mail}"),
        (&*uuid, "https://a.test/x?q=of:{key};open"),
        ("https://a.test/x?q=id:7", "https://a.test/x?q=id:{id}"),
        ("https://a.test/x?ids=4,7", "https://a.test/x?ids=4,{id}"),
        ("https://a.test/posts(7)", "https://a.test/posts({id})"),
        ("https://a.test/app#/posts?q=by:ada", "https://a.test/app#/posts?q=by:{slug}"),
        ("https://a.test/x?q=by:%C3%A9,ada", "https://a.test/x?q=by:%C3%A9,{slug}"),
        ("https://a.test/x?q=ada,id:7", "https://a.test/x?q={slug},id:{id}"),
    ] {
        assert_eq!(with_proposals(url, &known).unwrap(), expected, "{url}");
    }
    for url in [
        "https://a.test/x?q=by:adam",
        "https://a.test/x?q=by:nada",
        "https://a.test/x?q=by:%C3%A9ada",
        "https://a.test/x?q=a%2541ada",
        "https://a.test/x?q=lang:de",
        "https://a.test/x?q=id:77",
        "https://a.test/x?q=page:7,limit:7",
        "https://a.test/x?limit=7",
        "https://a.test/x?offset=7-30",
        "https://a.test/x?q=since:2026-11-7",
        "https://a.test/x?q=since:7/11/2026",
        "https://a.test/x?q=at:7:05",
        "https://a.test/x?q=v:1.7",
        "https://a.test/x?q=%FF:ada",
        "https://ada.test/x?ada=1",
    ] {
        assert_eq!(with_proposals(url, &known).unwrap(), url);
    }
}

#[test]
fn nothing_is_assumed_of_a_word_that_more_than_one_choice_is_possible_for() {
    let one = values(&[("slug", "ada"), ("id", "7")]);
    let both = values(&[("slug", "ada"), ("user", "ada")]);
    for (url, known) in [
        (FILTER, &both),
        ("https://a.test/x?q=by:ada,for:ada", &one),
        ("https://a.test/ada?q=by:ada", &one),
        ("https://a.test/x?ids=4,7&next=/users/7", &one),
        // It may be less than the whole of what tells the account.
        ("https://a.test/ada-lovelace", &one),
        ("https://a.test/x?q=m:ada%40a.example", &one),
        ("https://a.test/user_7", &one),
    ] {
        let error = with_proposals(url, known).unwrap_err();
        assert!(matches!(error, DraftError::PartUndecided(_)), "{url}: {error}");
    }
    // The longest is meant.
    let known = values(&[("slug", "ada"), ("mail", "ada@a.example")]);
    let url = "https://a.test/x?q=m:ada%40a.example";
    assert_eq!(with_proposals(url, &known).unwrap(), "https://a.test/x?q=m:{mail}");
}

#[test]
fn each_word_of_a_part_is_chosen_for_and_can_be_chosen_again() {
    let known = values(&[("slug", "ada"), ("editor", "ada"), ("team", "blue sky")]);
    let url = "https://a.test/x?q=by:ada%2Bfor:ada%2Bteam:blue+sky&limit=30";
    let proposed = proposed_parts(url, &known, &known).unwrap();
    let shown: Vec<_> =
        proposed.iter().map(|part| (part.before.as_str(), part.after.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("/", ""),
            ("q=by:", "+for:ada+team:blue sky"),
            ("q=by:ada+for:", "+team:blue sky"),
            ("q=by:ada+for:ada+team:", ""),
            ("limit=", ""),
        ]
    );
    let choices: Vec<_> = proposed.iter().map(|part| part.choice.clone()).collect();
    let literal = || Some(PartChoice::AsItIs);
    assert_eq!(choices, [literal(), None, None, Some(value("team")), literal()]);

    let apply = |url: &str, words: [PartChoice; 3]| {
        let [first, second, third] = words.map(Some);
        let parts = vec![literal(), first, second, third, literal()];
        AddressChoice { url: url.to_owned(), parts }.apply(url, &known, &known)
    };
    let chosen = apply(url, [value("slug"), value("editor"), value("team")]).unwrap();
    assert_eq!(chosen, "https://a.test/x?q=by:{slug}%2Bfor:{editor}%2Bteam:{team}&limit=30");
    let again = apply(&chosen, [PartChoice::AsItIs, value("slug"), PartChoice::AsItIs]).unwrap();
    assert_eq!(again, "https://a.test/x?q=by:ada%2Bfor:{slug}%2Bteam:blue%20sky&limit=30");
    assert_eq!(
        apply(url, [PartChoice::AsItIs, PartChoice::AsItIs, PartChoice::AsItIs]).unwrap(),
        url
    );
    let other = apply(url, [value("team"), value("slug"), value("team")]);
    assert_eq!(
        other.unwrap_err().to_string(),
        "`team` does not equal `ada` at `q=by:ada+for:ada+team:blue sky` in the address, or is read \
         later"
    );
    let choice = AddressChoice {
        url: "https://a.test/x?q=by:{unread}".to_owned(),
        parts: vec![literal(), Some(value("team"))],
    };
    let other = choice.apply("https://a.test/x?q=by:{unread}", &known, &known);
    assert_eq!(
        other.unwrap_err().to_string(),
        "`team` does not equal `{unread}` at `q=by:{unread}` in the address, or is read later"
    );
}

#[test]
fn a_field_is_offered_and_never_assumed() {
    let (known, fields) =
        (values(&[("slug", "ada")]), values(&[("name", "ada"), ("plan", "gold")]));
    let url = "https://a.test/ada/gold/free";
    let parts = proposed_with_fields(url, &known, &fields, &known).unwrap();
    let offered: Vec<_> = parts.iter().map(|part| part.values.clone()).collect();
    assert_eq!(offered, [names(&["name", "slug"]), names(&["plan"]), names(&[])]);
    let choices: Vec<_> = parts.iter().map(|part| part.choice.clone()).collect();
    assert_eq!(choices, [Some(value("slug")), None, Some(PartChoice::AsItIs)]);
}

#[test]
fn what_stays_beside_a_word_may_be_own_too() {
    let known = values(&[("slug", "ada")]);
    let stays = |url: &str| {
        let parts = proposed_parts(url, &known, &known).unwrap();
        parts.iter().map(AddressPart::stays_own).collect::<Vec<_>>()
    };
    assert_eq!(stays(FILTER), [false, false, false, false]);
    assert_eq!(stays("https://a.test/x?q=by:ada,id:7"), [false, true]);
    assert_eq!(stays("https://a.test/x?q=by:ada,since:2026-11-24"), [false, false]);
}

#[test]
fn long_places_are_shortened_around_their_text() {
    let known = values(&[("slug", "ada")]);
    let (before, after) = ("b".repeat(100), "c".repeat(100));
    let url =
        format!("https://a.test/{}?{}=%3A{before}:ada:{after}", "d".repeat(100), "e".repeat(100));
    let parts = proposed_parts(&url, &known, &known).unwrap();
    let places: Vec<_> = parts.into_iter().map(|part| part.place).collect();
    let name = format!("{}…=", "e".repeat(24));
    let word = format!("{name}…{}:ada:{}…", "b".repeat(23), "c".repeat(23));
    assert_eq!(places, [format!("/{}…", "d".repeat(36)), word]);
}
