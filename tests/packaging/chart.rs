//! The chart: what it renders with several sets of values is valid for two versions of Kubernetes,
//! confined, and with enough time to drain.

use std::collections::BTreeMap;

use acceptance::root;
use serde_json::{Value, json};

use crate::{
    SECONDS_AFTER_DRAIN, deployed,
    renderer::{Rendered, lint, render, rendered, strings, text},
    settings,
};

#[test]
fn every_set_of_values_renders_to_valid_manifests() {
    for (name, _, rendered) in rendered_sets() {
        assert!(rendered.faults.is_empty(), "{name}: {:?}", rendered.faults);
        let mut seen = std::collections::BTreeSet::new();
        for object in &rendered.objects {
            let id = format!("{} {}", object["kind"], object["metadata"]["name"]);
            assert!(seen.insert(id.clone()), "{name}: {id} is there twice");
        }
        assert!(rendered.notes.contains("demo-avouch serves https://"), "{name}");
    }
    let findings = lint(&minimal());
    assert!(findings["errors"].as_array().unwrap().is_empty(), "{findings}");
}

#[test]
fn the_schemas_find_a_misspelt_field() {
    let wrong = json!({ "resources": { "request": { "cpu": "1" } } });
    let faults = rendered(&merged(&minimal(), &wrong)).faults;
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("Deployment in 1.33") && faults[1].contains("1.37"), "{faults:?}");
}

#[test]
fn pods_are_confined() {
    for (name, values, rendered) in rendered_sets() {
        for (kind, pod) in rendered.pods() {
            // Pods that run no browsers have none of the privileges of their sandbox.
            let has_hosts = values["browserHosts"]["enabled"] == true
                || values["settings"].get("browser_hosts").is_some();
            let runs_browsers = kind == "browser-host" || (kind == "service" && !has_hosts);
            let is_sandboxed = runs_browsers && values["browserSandbox"] != false;
            let spec = &pod["spec"];
            assert_eq!(spec["automountServiceAccountToken"], false, "{name}: {kind}");
            let user = &spec["securityContext"];
            assert_eq!(user["runAsNonRoot"], true, "{name}: {kind}");
            assert_eq!(user["runAsUser"], 10001, "{name}: {kind}, as in the image");
            for container in spec["containers"].as_array().unwrap() {
                let context = &container["securityContext"];
                assert_eq!(context["readOnlyRootFilesystem"], true, "{name}: {kind}");
                assert_eq!(context["allowPrivilegeEscalation"], false, "{name}: {kind}");
                assert_eq!(context["capabilities"], json!({ "drop": ["ALL"] }), "{name}: {kind}");
                let profile = if is_sandboxed { "Localhost" } else { "RuntimeDefault" };
                assert_eq!(context["seccompProfile"]["type"], profile, "{name}: {kind}");
                // The API refuses an unmasked /proc to pods in the user namespace of the node.
                let proc = context["procMount"] == "Unmasked";
                let has_own_users = spec["hostUsers"] == false;
                let both = (is_sandboxed, is_sandboxed);
                assert_eq!((proc, has_own_users), both, "{name}: {kind}");
            }
        }
    }
}

#[test]
fn variables_are_settings_and_hold_no_secret() {
    for (name, values, rendered) in rendered_sets() {
        for (kind, pod) in rendered.pods() {
            let container = &pod["spec"]["containers"][0];
            let variables = variables(container);
            for (variable, entry) in &variables {
                assert_eq!(settings::fault(variable), None, "{name}: {kind}");
                let key = variable.strip_prefix("AVOUCH_").unwrap_or(variable).to_lowercase();
                assert!(!settings::secret().contains(&key), "{name}: {kind} has {variable}");
                let is_key = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].contains(variable);
                let is_reference = is_key || *variable == "POD_IP";
                let has_reference = entry.get("valueFrom").is_some();
                assert_eq!(has_reference, is_reference, "{name}: {kind}: {variable}");
            }
            let expected = format!("{}", values["drainSeconds"].as_u64().unwrap_or(600));
            assert_eq!(variables["AVOUCH_DRAIN_SECONDS"]["value"], expected, "{name}: {kind}");
        }
    }
}

#[test]
fn settings_of_traces_have_the_names_that_opentelemetry_specifies() {
    let rendered = rendered(&everything());
    let mut seen = 0;
    for (kind, pod) in rendered.pods() {
        let variables = variables(&pod["spec"]["containers"][0]);
        if kind == "browser-host" {
            assert!(variables.keys().all(|name| !name.starts_with("OTEL_")), "{variables:?}");
            continue;
        }
        seen += 1;
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example:4318"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.1"),
            ("OTEL_EXPORTER_OTLP_HEADERS_FILE", "/run/secrets/avouch/otel_exporter_otlp_headers"),
        ] {
            assert_eq!(variables[name]["value"], value, "{kind}");
        }
    }
    assert!(seen > 0);
}

#[test]
fn pods_migrate_only_where_no_job_does() {
    for (name, values, rendered) in rendered_sets() {
        let has_job = values["migration"]["enabled"] != false;
        assert_eq!(rendered.all("Job").len(), usize::from(has_job), "{name}");
        for (kind, pod) in rendered.pods() {
            let variables = variables(&pod["spec"]["containers"][0]);
            let migrate = variables.get("AVOUCH_MIGRATE").map(|entry| text(&entry["value"]));
            let expected = (has_job && kind != "browser-host").then_some("never");
            assert_eq!(migrate, expected, "{name}: {kind}");
        }
    }
}

#[test]
fn numbers_are_written_without_an_exponent() {
    let values = json!({ "settings": { "retention_days": 1_000_000 }, "drainSeconds": 86_400 });
    let rendered = rendered(&merged(&minimal(), &values));
    let container = &rendered.only("Deployment")["spec"]["template"]["spec"]["containers"][0];
    let variables = variables(container);
    assert_eq!(variables["AVOUCH_RETENTION_DAYS"]["value"], "1000000");
    assert_eq!(variables["AVOUCH_DRAIN_SECONDS"]["value"], "86400");
}

#[test]
fn pods_are_killed_only_after_the_drain() {
    let drains = [0, 600, 86_400];
    let values = drains.map(|seconds| merged(&apart(), &json!({ "drainSeconds": seconds })));
    for (seconds, rendered) in drains.into_iter().zip(render(&values)) {
        let rendered = rendered.unwrap();
        for kind in ["service", "browser-host", "delivery"] {
            let pod = &rendered.pod(kind)["spec"];
            let period = &pod["terminationGracePeriodSeconds"];
            assert_eq!(*period, seconds + SECONDS_AFTER_DRAIN, "{kind}");
        }
    }
}

#[test]
fn every_selector_selects_the_pods_of_its_component_alone() {
    let rendered = rendered(&apart());
    let labels = |pod: &Value| pod["metadata"]["labels"].as_object().unwrap().clone();
    let pods: BTreeMap<_, _> =
        rendered.pods().into_iter().map(|(component, pod)| (component, labels(pod))).collect();
    assert_eq!(pods.len(), 4, "{:?}", pods.keys());
    let mut seen = 0;
    for component in pods.keys() {
        for (kind, pointer) in [
            ("Deployment", "/spec/selector/matchLabels"),
            ("Service", "/spec/selector"),
            ("PodDisruptionBudget", "/spec/selector/matchLabels"),
            ("NetworkPolicy", "/spec/podSelector/matchLabels"),
        ] {
            for object in rendered.of(kind, component) {
                let selector = object.pointer(pointer).unwrap().as_object().unwrap();
                let selects = |labels: &serde_json::Map<String, Value>| {
                    selector.iter().all(|(name, value)| labels.get(name) == Some(value))
                };
                let selected = pods.iter().filter(|(_, labels)| selects(labels));
                let selected: Vec<_> = selected.map(|(name, _)| *name).collect();
                assert_eq!(selected, [*component], "{kind}: {selector:?}");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 10, "of deliveries there is neither a Service nor a budget");
    for component in ["service", "browser-host"] {
        let scaled = rendered.only_of("HorizontalPodAutoscaler", component);
        let deployment = rendered.only_of("Deployment", component);
        assert_eq!(scaled["spec"]["scaleTargetRef"]["name"], deployment["metadata"]["name"]);
    }
}

#[test]
fn replicas_are_scaled_by_processor_and_by_the_metrics_that_are_named() {
    let metrics = |values: Value| -> Vec<String> {
        let rendered = rendered(&merged(&minimal(), &json!({ "autoscaling": values })));
        assert!(rendered.only("Deployment")["spec"].get("replicas").is_none());
        let metrics = &rendered.only("HorizontalPodAutoscaler")["spec"]["metrics"];
        let named = metrics.as_array().unwrap().iter().map(|metric| {
            let name = metric.pointer("/pods/metric/name").or(metric.pointer("/resource/name"));
            text(name.unwrap()).to_owned()
        });
        named.collect()
    };
    let pod_metrics = json!([{ "name": "browsers_in_use", "averageValue": "10" }]);
    assert_eq!(metrics(json!({ "enabled": true })), ["cpu"]);
    assert_eq!(
        metrics(json!({ "enabled": true, "podMetrics": pod_metrics })),
        ["cpu", "browsers_in_use"]
    );
    assert_eq!(
        metrics(json!({ "enabled": true, "cpuUtilization": 0, "podMetrics": pod_metrics })),
        ["browsers_in_use"]
    );
    let fixed = rendered(&minimal());
    assert_eq!(fixed.only("Deployment")["spec"]["replicas"], 2);
    assert!(fixed.all("HorizontalPodAutoscaler").is_empty());
}

#[test]
fn the_network_is_closed_except_for_what_is_named() {
    let policy = |rendered: &Rendered| rendered.only("NetworkPolicy")["spec"].clone();
    let closed = policy(&rendered(&minimal()));
    assert_eq!(closed["policyTypes"], json!(["Ingress", "Egress"]));
    let ports = |rules: &Value| -> Vec<String> {
        let rules = rules.as_array().unwrap().iter();
        rules.map(|rule| rule["ports"][0]["port"].to_string()).collect()
    };
    assert_eq!(ports(&closed["ingress"]), [r#""http""#]);
    assert_eq!(closed["egress"].as_array().unwrap().len(), 2, "names, and public addresses");
    for private in ["10.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16", "172.16.0.0/12"] {
        let except = strings(&closed["egress"][1]["to"][0]["ipBlock"]["except"]);
        assert!(except.contains(&private.to_owned()), "{private}");
    }
    let open = policy(&rendered(&everything()));
    assert_eq!(ports(&open["ingress"]), [r#""http""#, r#""instances""#, r#""metrics""#]);
    assert_eq!(ports(&open["egress"])[2..], [r#""instances""#, "5432"]);
    // Only pods of the service have the key of this port, and reach it.
    let labels = &open["podSelector"];
    assert_eq!(&open["ingress"][1]["from"][0]["podSelector"], labels);
    assert_eq!(&open["egress"][2]["to"][0]["podSelector"], labels);
}

#[test]
fn values_that_cannot_work_are_refused() {
    let refused = [
        (json!({ "settings": { "public_url": null } }), "public_url"),
        (json!({ "settings": { "storage_url": "file:///objects" } }), "storage_url"),
        (json!({ "settings": { "brousers": 4 } }), "brousers"),
        (json!({ "settings": { "database_url": "postgres://u:p@h/d" } }), "database_url"),
        (json!({ "settings": { "drain_seconds": 10 } }), "drain_seconds"),
        (json!({ "secrets": { "name": "" } }), "/secrets/name"),
        (json!({ "secrets": { "files": { "listen": "x" } } }), "listen"),
        (
            json!({ "objectStore": { "environment": { "AWS_SECRET_ACCESS_KEY": "x" } } }),
            "AWS_SECRET",
        ),
        (json!({ "replica": 3 }), "replica"),
        (json!({ "autoscaling": { "enabled": true, "cpuUtilization": 0 } }), "podMetrics"),
        (json!({ "ingress": { "enabled": true } }), "ingress.host"),
    ];
    let values: Vec<_> = refused.iter().map(|(wrong, _)| merged(&minimal(), wrong)).collect();
    for ((wrong, told), rendered) in refused.iter().zip(render(&values)) {
        let Err(error) = rendered else { panic!("{wrong} is accepted") };
        assert!(error.contains(told), "{wrong}: {error}");
    }
}

#[test]
fn the_chart_has_the_version_of_the_service() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, version) = manifest.split_once("\nversion = \"").unwrap();
    let version = version.split('"').next().unwrap();
    let chart = deployed("helm/avouch/Chart.yaml");
    for key in ["version", "appVersion"] {
        let line = format!("\n{key}: {version}\n");
        assert!(chart.contains(&line), "Chart.yaml must have {line}");
    }
}

/// The smallest set of values that is accepted.
pub(crate) fn minimal() -> Value {
    json!({
        "settings": {
            "public_url": "https://avouch.example",
            "storage_url": "s3://recordings/avouch",
        },
        "secrets": { "name": "avouch" },
    })
}

/// All optional parts.
pub(crate) fn everything() -> Value {
    let more = json!({
        "image": { "digest": format!("sha256:{}", "a".repeat(64)) },
        "imagePullSecrets": [{ "name": "registry" }],
        "drainSeconds": 1800,
        "settings": {
            "browsers": 32,
            "trusted_proxies": "10.0.0.0/8",
            "log_format": "text",
            "otel_exporter_otlp_endpoint": "https://collector.example:4318",
            "otel_traces_sampler_arg": "0.1",
        },
        "secrets": {
            "previousSecretKey": "secret.key.old",
            "files": {
                "redis_url": "redis-url",
                "smtp_url": "smtp-url",
                "seal_keys": "seal-keys",
                "otel_exporter_otlp_headers": "collector-headers",
            },
        },
        "objectStore": { "secretName": "bucket", "environment": { "AWS_REGION": "eu-central-1" } },
        "instances": { "secretName": "instances" },
        "appArmorProfile": { "type": "Localhost", "localhostProfile": "avouch" },
        "service": { "type": "LoadBalancer", "annotations": { "a.example/b": "c" } },
        "ingress": {
            "enabled": true,
            "className": "public",
            "host": "avouch.example",
            "tlsSecretName": "avouch-tls",
            "annotations": { "a.example/hash": "path" },
        },
        "autoscaling": {
            "enabled": true,
            "podMetrics": [{ "name": "browsers_in_use", "averageValue": "10" }],
        },
        "podDisruptionBudget": { "maxUnavailable": "20%" },
        "networkPolicy": {
            "ingressFrom": [{ "namespaceSelector": { "matchLabels": { "name": "ingress" } } }],
            "metricsFrom": [{ "namespaceSelector": { "matchLabels": { "name": "monitoring" } } }],
            "egress": [{
                "to": [{ "ipBlock": { "cidr": "10.1.2.3/32" } }],
                "ports": [{ "port": 5432, "protocol": "TCP" }],
            }],
        },
        "migration": { "waitSeconds": 600 },
        "serviceAccount": { "annotations": { "a.example/role": "avouch" } },
        "podAnnotations": { "a.example/scrape": "true" },
        "podLabels": { "a.example/team": "identity" },
        "nodeSelector": { "kubernetes.io/arch": "amd64" },
        "tolerations": [{ "key": "browsers", "operator": "Exists" }],
        "affinity": { "nodeAffinity": {} },
    });
    merged(&minimal(), &more)
}

/// All optional parts, with browsers and deliveries in pods of their own, and certificates of cert-manager.
pub(crate) fn apart() -> Value {
    let more = json!({
        "settings": {
            "region": "europe-west",
            "instance_name": "instance.example",
            "browser_host_name": "browser-host.example",
            "browser_memory_mb": 2048,
            "log": "debug",
        },
        "secrets": { "files": { "egress_proxy": "proxies" } },
        "instances": { "secretName": "" },
        "certificates": { "issuer": { "name": "authority", "kind": "ClusterIssuer" } },
        "browserHosts": {
            "enabled": true,
            "browsers": 20,
            "autoscaling": { "enabled": true, "slotsUtilization": 70 },
            "podDisruptionBudget": { "maxUnavailable": "10%" },
            "podAnnotations": { "a.example/host": "true" },
            "podLabels": { "a.example/team": "browsers" },
            "nodeSelector": { "a.example/browsers": "true" },
            "tolerations": [{ "key": "hosts", "operator": "Exists" }],
            "affinity": { "nodeAffinity": {} },
        },
        "delivery": {
            "enabled": true,
            "replicas": 3,
            "nodeSelector": { "a.example/delivery": "true" },
            "tolerations": [{ "key": "delivery", "operator": "Exists" }],
            "affinity": { "nodeAffinity": {} },
        },
    });
    merged(&everything(), &more)
}

/// Browsers in pods of their own, and nothing else that is optional.
pub(crate) fn hosted() -> Value {
    let more = json!({
        "instances": { "secretName": "instances" },
        "browserHosts": { "enabled": true, "secretName": "browsers" },
    });
    merged(&minimal(), &more)
}

/// Sets of values with their names and what they render to.
pub(crate) fn rendered_sets() -> Vec<(&'static str, Value, Rendered)> {
    let sets = value_sets();
    let values: Vec<_> = sets.iter().map(|(_, values)| values.clone()).collect();
    let rendered = sets.into_iter().zip(render(&values)).map(|((name, values), rendered)| {
        let rendered = rendered.unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, values, rendered)
    });
    rendered.collect()
}

fn value_sets() -> Vec<(&'static str, Value)> {
    let fleet = json!({
        "browserSandbox": false,
        "secrets": { "files": { "browser": "fleet-url" } },
        "metrics": { "enabled": false },
    });
    let reduced = json!({
        "podDisruptionBudget": { "enabled": false },
        "networkPolicy": { "enabled": false },
        "migration": { "enabled": false },
        "drainSeconds": 0,
        "replicas": 1,
    });
    let elsewhere = json!({
        "instances": { "secretName": "instances" },
        "settings": { "browser_hosts": "hosts.example:8444" },
    });
    vec![
        ("minimal", minimal()),
        ("everything", everything()),
        ("apart", apart()),
        ("hosted", hosted()),
        ("hosts elsewhere", merged(&minimal(), &elsewhere)),
        ("delivery", merged(&minimal(), &json!({ "delivery": { "enabled": true } }))),
        ("fleet", merged(&minimal(), &fleet)),
        ("reduced", merged(&minimal(), &reduced)),
    ]
}

/// Returns values with others over them, as Helm merges files of values.
pub(crate) fn merged(values: &Value, over: &Value) -> Value {
    let (Value::Object(values), Value::Object(over)) = (values, over) else {
        return over.clone();
    };
    let mut all = values.clone();
    for (name, value) in over {
        let below = all.get(name).cloned().unwrap_or_default();
        all.insert(name.clone(), merged(&below, value));
    }
    Value::Object(all)
}

/// Returns the variables of a container by their names.
pub(crate) fn variables(container: &Value) -> BTreeMap<&str, &Value> {
    let variables = container["env"].as_array().unwrap().iter();
    let variables: Vec<_> = variables.map(|entry| (text(&entry["name"]), entry)).collect();
    let by_name: BTreeMap<_, _> = variables.iter().copied().collect();
    assert_eq!(by_name.len(), variables.len(), "a variable is there twice");
    by_name
}
