//! The settings of regions: browsers can run in processes at several places.

use std::collections::BTreeMap;

use application::settings::Addresses;
use domain::worker_region::WorkerRegion;

/// Reads `region` and `regions`; an entry of the latter is `NAME=URL`.
pub(super) fn addresses(
    values: &BTreeMap<String, String>,
    public: &str,
    faults: &mut Vec<String>,
) -> Addresses {
    if url::Url::parse(public).is_err() {
        faults.push("public_url must be a URL".into());
    }
    let mut regions = BTreeMap::new();
    for entry in values.get("regions").into_iter().flat_map(|list| list.split_whitespace()) {
        let parts = entry.split_once('=');
        let known = parts.and_then(|(name, url)| {
            let fine =
                url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            WorkerRegion::named(name).zip(fine.then_some(url))
        });
        match known {
            Some((region, url)) => {
                regions.insert(region, url.trim_end_matches('/').to_owned());
            }
            None => faults.push(format!("regions: {entry} is not NAME=URL; names are {}", names())),
        }
    }
    let own = values.get("region").and_then(|name| {
        let region = WorkerRegion::named(name);
        if region.is_none() {
            faults.push(format!("region must be one of {}", names()));
        }
        region
    });
    Addresses { public: public.trim_end_matches('/').to_owned(), regions, own }
}

fn names() -> String {
    WorkerRegion::ALL.iter().map(|region| region.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(&str, &str)]) -> Result<Addresses, Vec<String>> {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let mut faults = vec![];
        let read = addresses(&values.collect(), "https://avouch.example/", &mut faults);
        if faults.is_empty() { Ok(read) } else { Err(faults) }
    }

    #[test]
    fn a_session_is_opened_where_its_region_is() {
        let two = "us-west=https://usw.example/ europe-west=https://euw.example";
        let west = read(&[("regions", two), ("region", "us-west")]).unwrap();
        assert_eq!(west.of(WorkerRegion::UsWest), "https://usw.example");
        assert_eq!(west.elsewhere(WorkerRegion::UsWest), None);
        assert_eq!(west.elsewhere(WorkerRegion::EuropeWest), Some("https://euw.example"));
        assert_eq!(west.elsewhere(WorkerRegion::AsiaSouth), Some("https://avouch.example"));
        let rest = read(&[("regions", two)]).unwrap();
        assert_eq!(rest.elsewhere(WorkerRegion::AsiaSouth), None);
        assert_eq!(rest.elsewhere(WorkerRegion::UsWest), Some("https://usw.example"));
        let one = read(&[("region", "us-west")]).unwrap();
        assert_eq!(one.elsewhere(WorkerRegion::AsiaSouth), None);
    }

    #[test]
    fn what_is_no_region_is_told() {
        for values in [("region", "moon"), ("regions", "moon=https://a.b"), ("regions", "us-west")]
        {
            assert!(read(&[values]).is_err(), "{values:?}");
        }
    }
}
