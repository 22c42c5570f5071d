//! The settings of traces. They have the names that OpenTelemetry specifies for every program.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use domain::secret::Secret;
use percent_encoding::percent_decode_str;
use traces::{InvalidSampler, Sampler, TraceConfig};
use url::{Host, Url};

use super::values::{certificates, within};

const SERVICE_NAME: &str = "service.name";
/// Further attributes of the resource, and headers.
const MAX_PAIRS: usize = 32;

/// Reads where traces are sent; `None` if that is nowhere.
pub(super) fn traces(
    values: &BTreeMap<String, String>,
    faults: &mut Vec<String>,
) -> Option<TraceConfig> {
    // An empty variable is one that is not set (OpenTelemetry specification).
    let given = |key: &str| values.get(key).map(String::as_str).filter(|text| !text.is_empty());
    if given("otel_sdk_disabled").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
        return None;
    }
    match given("otel_traces_exporter") {
        None | Some("otlp") => (),
        Some("none") => return None,
        Some(_) => faults.push("otel_traces_exporter must be otlp or none".into()),
    }
    let (key, endpoint) = endpoint(given)?;
    // What is set for traces replaces what is set for all signals.
    let of_traces = |own: &'static str, all: &'static str| match given(own) {
        Some(text) => (own, Some(text)),
        None => (all, given(all)),
    };
    let (protocol_key, protocol) =
        of_traces("otel_exporter_otlp_traces_protocol", "otel_exporter_otlp_protocol");
    if !matches!(protocol, None | Some("http/protobuf")) {
        faults.push(format!("{protocol_key} must be http/protobuf"));
    }
    let (headers_key, headers) =
        of_traces("otel_exporter_otlp_traces_headers", "otel_exporter_otlp_headers");
    let headers = pairs(headers, headers_key, faults);
    match Url::parse(&endpoint).ok().filter(is_endpoint) {
        None => faults
            .push(format!("{key} must be an http or https URL without a user, query or fragment")),
        Some(url) if !headers.is_empty() && !is_private(&url) => {
            faults.push(format!("{headers_key} needs an endpoint with https, or on this machine"));
        }
        Some(_) => (),
    }
    let mut attributes =
        pairs(given("otel_resource_attributes"), "otel_resource_attributes", faults);
    let named = attributes.iter().position(|(name, _)| name == SERVICE_NAME);
    let named = named.map(|place| attributes.swap_remove(place).1);
    let name = given("otel_service_name").map(str::to_owned).or(named);
    let (timeout_key, timeout) =
        of_traces("otel_exporter_otlp_traces_timeout", "otel_exporter_otlp_timeout");
    // A request takes no longer than this anyway.
    let timeout = within(timeout.unwrap_or("10000"), timeout_key, 1..=20_000, faults);
    let (roots_key, roots) =
        of_traces("otel_exporter_otlp_traces_certificate", "otel_exporter_otlp_certificate");
    let roots = roots.map(str::to_owned);
    Some(TraceConfig {
        endpoint,
        headers: headers.into_iter().map(|(name, value)| (name, Secret::new(value))).collect(),
        roots: certificates(roots.as_ref(), roots_key, faults),
        timeout: Duration::from_millis(timeout),
        sampler: sampler(given, faults),
        service_name: name.unwrap_or_else(|| "avouch".to_owned()),
        attributes,
    })
}

/// Returns the URL of traces, and the key that it comes from.
fn endpoint<'a>(given: impl Fn(&str) -> Option<&'a str>) -> Option<(&'static str, String)> {
    let (own, all) = ("otel_exporter_otlp_traces_endpoint", "otel_exporter_otlp_endpoint");
    if let Some(url) = given(own) {
        return Some((own, url.to_owned()));
    }
    given(all).map(|url| (all, format!("{}/v1/traces", url.trim_end_matches('/'))))
}

fn is_endpoint(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
}

/// Returns whether nobody else can read what is sent to this URL.
fn is_private(url: &Url) -> bool {
    let is_here = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.scheme() == "https" || is_here
}

fn sampler<'a>(given: impl Fn(&str) -> Option<&'a str>, faults: &mut Vec<String>) -> Sampler {
    let name = given("otel_traces_sampler").unwrap_or("parentbased_always_on");
    Sampler::of(name, given("otel_traces_sampler_arg")).unwrap_or_else(|error| {
        let key = match error {
            InvalidSampler::Name => "otel_traces_sampler",
            InvalidSampler::Ratio => "otel_traces_sampler_arg",
        };
        faults.push(format!("{key} {error}"));
        Sampler::Never
    })
}

/// Reads `name=value,name=value`, with values in percent-encoding.
fn pairs(text: Option<&str>, key: &str, faults: &mut Vec<String>) -> Vec<(String, String)> {
    let items = text.unwrap_or_default().split(',').map(str::trim).filter(|item| !item.is_empty());
    let read = items.map(|item| {
        let (name, value) = item.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok().map(Cow::into_owned)?;
        Some((name.trim().to_owned(), value)).filter(|(name, _)| !name.is_empty())
    });
    let read: Option<Vec<_>> = read.collect();
    read.filter(|pairs| pairs.len() <= MAX_PAIRS).unwrap_or_else(|| {
        faults.push(format!("{key} must be NAME=VALUE,… with {MAX_PAIRS} pairs at most"));
        vec![]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> (Option<TraceConfig>, String) {
        let mut faults = vec![];
        let values = set.iter().map(|(key, value)| (format!("otel_{key}"), (*value).to_owned()));
        let config = traces(&values.collect(), &mut faults);
        (config, faults.join("; "))
    }

    const COLLECTOR: (&str, &str) = ("exporter_otlp_endpoint", "http://collector:4318/");

    #[test]
    fn without_an_endpoint_there_are_no_traces() {
        for set in [
            &[][..],
            &[("service_name", "x"), ("traces_sampler", "unknown")],
            &[("exporter_otlp_endpoint", "")],
            &[COLLECTOR, ("traces_exporter", "none")],
            &[COLLECTOR, ("sdk_disabled", "TRUE")],
        ] {
            let (config, faults) = read(set);
            assert!(config.is_none() && faults.is_empty(), "{set:?}: {faults}");
        }
    }

    #[test]
    fn the_path_is_added_to_the_endpoint_of_all_signals_only() {
        let (config, faults) = read(&[COLLECTOR, ("traces_exporter", "otlp")]);
        assert_eq!(faults, "");
        let config = config.unwrap();
        assert_eq!(config.endpoint, "http://collector:4318/v1/traces");
        assert_eq!((config.sampler, config.service_name.as_str()), (Sampler::Always, "avouch"));
        assert_eq!(config.timeout, Duration::from_secs(10));
        let own = ("exporter_otlp_traces_endpoint", "https://traces.example/ingest");
        let (config, faults) = read(&[COLLECTOR, own]);
        assert_eq!((config.unwrap().endpoint.as_str(), faults.as_str()), (own.1, ""));
    }

    #[test]
    fn names_attributes_and_headers_are_read() {
        let (config, faults) = read(&[
            ("exporter_otlp_endpoint", "http://127.0.0.1:4318"),
            ("exporter_otlp_headers", "authorization=Basic%20YTpi, x-team = a=b"),
            ("resource_attributes", "service.name=other,deployment.environment.name=test"),
            ("traces_sampler", "traceidratio"),
            ("traces_sampler_arg", "0.5"),
        ]);
        assert_eq!(faults, "");
        let config = config.unwrap();
        let headers = config.headers.iter().map(|(name, value)| (name.as_str(), value.expose()));
        let expected = [("authorization", "Basic YTpi"), ("x-team", "a=b")];
        assert_eq!(headers.collect::<Vec<_>>(), expected);
        assert_eq!(config.service_name, "other");
        let environment = ("deployment.environment.name".to_owned(), "test".to_owned());
        assert_eq!(config.attributes, [environment]);
        assert_eq!(config.sampler, Sampler::Ratio(0.5));
        assert!(!format!("{config:?}").contains("YTpi"), "{config:?}");
    }

    #[test]
    fn what_is_set_for_traces_replaces_what_is_set_for_all_signals() {
        let (config, faults) = read(&[
            ("exporter_otlp_endpoint", "http://127.0.0.1:4318"),
            ("exporter_otlp_headers", "authorization=for-others"),
            ("exporter_otlp_traces_headers", "api-key=for-traces"),
            ("exporter_otlp_protocol", "grpc"),
            ("exporter_otlp_traces_protocol", "http/protobuf"),
            ("exporter_otlp_timeout", "1"),
            ("exporter_otlp_traces_timeout", "2000"),
        ]);
        assert_eq!(faults, "");
        let config = config.unwrap();
        let headers = config.headers.iter().map(|(name, value)| (name.as_str(), value.expose()));
        assert_eq!(headers.collect::<Vec<_>>(), [("api-key", "for-traces")]);
        assert_eq!(config.timeout, Duration::from_secs(2));
        let (_, faults) = read(&[COLLECTOR, ("exporter_otlp_traces_protocol", "grpc")]);
        assert_eq!(faults, "otel_exporter_otlp_traces_protocol must be http/protobuf");
    }

    #[test]
    fn each_fault_names_its_key() {
        let all = "exporter_otlp_headers exporter_otlp_protocol exporter_otlp_timeout \
                   exporter_otlp_certificate traces_exporter resource_attributes traces_sampler";
        let set: Vec<_> = all.split_whitespace().map(|key| (key, "?")).collect();
        let (_, faults) = read(&[&[COLLECTOR], &set[..]].concat());
        for key in all.split_whitespace() {
            assert!(faults.contains(&format!("otel_{key}")), "{key}: {faults}");
        }
        let ratio = [COLLECTOR, ("traces_sampler", "traceidratio"), ("traces_sampler_arg", "2")];
        assert!(read(&ratio).1.starts_with("otel_traces_sampler_arg must be"));
        for url in
            ["grpc://collector:4317", "collector:4318", "http://u:p@collector", "http://c?k=1"]
        {
            let (_, faults) = read(&[("exporter_otlp_traces_endpoint", url)]);
            assert!(faults.starts_with("otel_exporter_otlp_traces_endpoint must be"), "{url}");
        }
    }

    #[test]
    fn headers_are_secrets_and_need_tls() {
        let headers = ("exporter_otlp_headers", "api-key=geheim");
        let (_, faults) = read(&[COLLECTOR, headers]);
        assert!(faults.starts_with("otel_exporter_otlp_headers needs"), "{faults}");
        for url in ["https://collector", "http://127.0.0.1:1", "http://[::1]:1", "http://localhost"]
        {
            assert_eq!(read(&[("exporter_otlp_endpoint", url), headers]).1, "", "{url}");
        }
    }
}
