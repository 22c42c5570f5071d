//! Browser hosts and roles in the chart: what is mounted where, who reaches whom, which certificates they
//! have, and how hosts scale.

use std::fs;

use acceptance::root;
use serde_json::{Value, json};

use crate::{
    chart::{apart, hosted, merged, minimal, rendered_sets, variables},
    renderer::{Rendered, render, rendered, strings, text},
};

/// The settings that a host may have: none of them is a secret or leads to one but its own certificate.
pub(crate) const OF_HOSTS: [&str; 14] = [
    "AVOUCH_BROWSERS",
    "AVOUCH_BROWSER_HOST_NAME",
    "AVOUCH_BROWSER_MEMORY_MB",
    "AVOUCH_DRAIN_SECONDS",
    "AVOUCH_EGRESS_ROOTS",
    "AVOUCH_INSTANCE_CERT",
    "AVOUCH_INSTANCE_KEY",
    "AVOUCH_INSTANCE_LISTEN",
    "AVOUCH_INSTANCE_NAME",
    "AVOUCH_INSTANCE_ROOTS",
    "AVOUCH_LOG",
    "AVOUCH_LOG_FORMAT",
    "AVOUCH_METRICS_LISTEN",
    "AVOUCH_REGION",
];

#[test]
fn a_host_has_no_secret_but_its_certificate() {
    for (values, secret) in [(hosted(), "browsers"), (apart(), "demo-avouch-browsers")] {
        let rendered = rendered(&values);
        let pod = rendered.pod("browser-host");
        let container = &pod["spec"]["containers"][0];
        assert_eq!(strings(&container["args"]), ["serve", "--role", "browser"]);
        let [temporary, certificate] = &pod["spec"]["volumes"].as_array().unwrap()[..] else {
            panic!("a host has {}", pod["spec"]["volumes"]);
        };
        assert!(temporary.get("emptyDir").is_some(), "{temporary}");
        let files = ["tls.crt", "tls.key", "ca.crt"];
        let items = files.map(|file| json!({ "key": file, "path": file }));
        let expected = json!({ "secretName": secret, "defaultMode": 0o440, "items": items });
        assert_eq!(certificate["secret"], expected);
        assert!(container.get("envFrom").is_none());
        for (variable, entry) in variables(container) {
            assert!(OF_HOSTS.contains(&variable), "a host has {variable}");
            assert!(entry.get("valueFrom").is_none(), "{variable}: {entry}");
        }
        // Annotations may bring in secrets, and the account of the service may have a role in the cloud.
        let theirs = values["podAnnotations"].as_object().into_iter().flatten();
        for (annotation, _) in theirs {
            assert!(pod["metadata"]["annotations"].get(annotation).is_none(), "{annotation}");
        }
        let account = rendered.only_of("ServiceAccount", "browser-host");
        assert_eq!(pod["spec"]["serviceAccountName"], account["metadata"]["name"]);
        assert!(account["metadata"].get("annotations").is_none(), "{account}");
        let other = &rendered.pod("service")["spec"]["serviceAccountName"];
        assert_ne!(pod["spec"]["serviceAccountName"], *other);
    }
}

#[test]
fn pods_have_the_files_that_their_settings_name() {
    for (name, _, rendered) in rendered_sets() {
        for (component, pod) in rendered.pods() {
            let container = &pod["spec"]["containers"][0];
            let mounts = container["volumeMounts"].as_array().unwrap();
            for (variable, entry) in variables(container) {
                let path = entry["value"].as_str().filter(|value| value.starts_with("/run/"));
                let Some(path) = path else { continue };
                let (folder, file) = path.rsplit_once('/').unwrap();
                let mount = mounts.iter().find(|mount| mount["mountPath"] == folder);
                let mount = mount.unwrap_or_else(|| panic!("{name}: {component}: {variable}"));
                // Files below a subPath do not change when their Secret does.
                assert!(mount.get("subPath").is_none(), "{name}: {component}: {variable}");
                let volumes = pod["spec"]["volumes"].as_array().unwrap();
                let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]);
                let items = volume.unwrap()["secret"]["items"].as_array().unwrap();
                let has_file = items.iter().any(|item| item["path"] == file);
                assert!(has_file, "{name}: {component}: {path} is not in {items:?}");
            }
        }
    }
}

#[test]
fn instances_use_the_hosts_of_the_release() {
    for values in [hosted(), apart()] {
        let rendered = rendered(&values);
        let service = rendered.only_of("Service", "browser-host");
        assert_eq!(service["spec"]["clusterIP"], "None", "its name leads to all hosts");
        let container = &rendered.pod("service")["spec"]["containers"][0];
        let host = &rendered.pod("browser-host")["spec"]["containers"][0];
        let (ours, theirs) = (variables(container), variables(host));
        let port = service["spec"]["ports"][0]["port"].as_u64().unwrap();
        let name = text(&service["metadata"]["name"]);
        assert_eq!(ours["AVOUCH_BROWSER_HOSTS"]["value"], format!("{name}:{port}"));
        assert_eq!(theirs["AVOUCH_INSTANCE_LISTEN"]["value"], format!("0.0.0.0:{port}"));
        assert_eq!(host["ports"][0]["containerPort"], port);
        assert_eq!(service["spec"]["ports"][0]["targetPort"], host["ports"][0]["name"]);
        for variable in ["AVOUCH_INSTANCE_LISTEN", "AVOUCH_INSTANCE_ADDRESS"] {
            assert!(ours.contains_key(variable), "an instance needs {variable} too");
        }
        // Hosts and instances know each other by these, and serve the same region.
        for variable in ["AVOUCH_REGION", "AVOUCH_INSTANCE_NAME", "AVOUCH_BROWSER_HOST_NAME"] {
            assert_eq!(ours.get(variable), theirs.get(variable), "{variable}");
        }
    }
    let apart = rendered(&apart());
    let theirs = variables(&apart.pod("browser-host")["spec"]["containers"][0]);
    assert_eq!(theirs["AVOUCH_REGION"]["value"], "europe-west");
    assert_eq!(theirs["AVOUCH_BROWSER_MEMORY_MB"]["value"], "2048");
    assert_eq!(theirs["AVOUCH_BROWSERS"]["value"], "20");
}

#[test]
fn instances_together_have_as_many_sessions_as_hosts_have_browsers() {
    let scaled = |least: u64, most: u64| json!({ "enabled": true, "minReplicas": least, "maxReplicas": most });
    let cases = [
        (json!({}), Some("16")),
        (json!({ "replicas": 3 }), Some("11")),
        (json!({ "replicas": 100 }), Some("1")),
        (json!({ "browserHosts": { "replicas": 200 } }), Some("1000")),
        (json!({ "browserHosts": { "autoscaling": scaled(1, 9) } }), Some("72")),
        (json!({ "autoscaling": scaled(4, 20) }), Some("8")),
        (json!({ "settings": { "browsers": 5 } }), Some("5")),
    ];
    let values: Vec<_> = cases.iter().map(|(values, _)| merged(&hosted(), values)).collect();
    for ((values, expected), rendered) in cases.iter().zip(render(&values)) {
        assert_eq!(browsers(&rendered.unwrap()).as_deref(), *expected, "{values}");
    }
    // Without hosts the service has a default of its own.
    assert_eq!(browsers(&rendered(&minimal())), None);
}

#[test]
fn hosts_are_reached_by_instances_alone_and_reach_nothing() {
    let labels = |rendered: &Rendered, component: &str| {
        rendered.only_of("NetworkPolicy", component)["spec"]["podSelector"].clone()
    };
    for (values, ports) in [(hosted(), 1), (apart(), 2)] {
        let rendered = rendered(&values);
        let policy = &rendered.only_of("NetworkPolicy", "browser-host")["spec"];
        assert_eq!(policy["policyTypes"], json!(["Ingress", "Egress"]));
        assert_eq!(policy["egress"], json!([]), "not even names");
        let ingress = policy["ingress"].as_array().unwrap();
        assert_eq!(ingress.len(), ports);
        let expected = json!({
            "ports": [{ "port": "browsers", "protocol": "TCP" }],
            "from": [{ "podSelector": labels(&rendered, "service") }],
        });
        assert_eq!(ingress[0], expected);
        // The other one is for metrics, from where metrics are read.
        if let Some(metrics) = ingress.get(1) {
            assert_eq!(metrics["ports"][0]["port"], "metrics");
            assert_eq!(metrics["from"], values["networkPolicy"]["metricsFrom"]);
        }
        let egress = &rendered.only_of("NetworkPolicy", "service")["spec"]["egress"];
        let way = json!({
            "ports": [{ "port": "browsers", "protocol": "TCP" }],
            "to": [{ "podSelector": labels(&rendered, "browser-host") }],
        });
        assert!(egress.as_array().unwrap().contains(&way), "{egress}");
    }
    let apart = rendered(&apart());
    let delivery = &apart.only_of("NetworkPolicy", "delivery")["spec"];
    let ports = |rules: &Value| -> Vec<String> {
        let rules = rules.as_array().unwrap().iter();
        rules.map(|rule| rule["ports"][0]["port"].to_string()).collect()
    };
    assert_eq!(ports(&delivery["ingress"]), [r#""metrics""#], "it serves nobody");
    assert_eq!(ports(&delivery["egress"]), ["53", "1", "5432"], "neither instances nor hosts");
}

#[test]
fn every_role_has_a_process() {
    let delivery = json!({ "delivery": { "enabled": true } });
    let hosts = json!({
        "instances": { "secretName": "instances" },
        "settings": { "browser_hosts": "hosts.example:8444" },
    });
    for (values, role) in [
        (minimal(), None),
        (merged(&minimal(), &delivery), Some("api,browser")),
        (hosted(), Some("api,delivery")),
        (merged(&minimal(), &hosts), Some("api,delivery")),
        (apart(), Some("api")),
    ] {
        let rendered = rendered(&values);
        let container = &rendered.pod("service")["spec"]["containers"][0];
        let variables = variables(container);
        let has = variables.get("AVOUCH_ROLE").map(|entry| text(&entry["value"]));
        assert_eq!(has, role, "{values}");
        let separate = rendered.of("Deployment", "delivery").len();
        let is_left_out = role.is_some_and(|role| !role.contains("delivery"));
        assert_eq!(separate, usize::from(is_left_out), "{values}");
    }
}

#[test]
fn deliveries_need_neither_certificates_nor_what_browsers_use() {
    let rendered = rendered(&apart());
    let pod = rendered.pod("delivery");
    let container = &pod["spec"]["containers"][0];
    assert_eq!(strings(&container["args"]), ["serve", "--role", "delivery"]);
    assert_eq!(rendered.only_of("Deployment", "delivery")["spec"]["replicas"], 3);
    let variables = variables(container);
    for variable in variables.keys() {
        let is_foreign = ["INSTANCE_", "BROWSER_HOST", "EGRESS_PROXY", "ROLE"]
            .iter()
            .any(|start| variable.starts_with(&format!("AVOUCH_{start}")));
        assert!(!is_foreign, "{variable}");
    }
    assert!(variables.contains_key("AVOUCH_SMTP_URL_FILE"), "it sends mails");
    assert!(variables.contains_key("AVOUCH_DATABASE_URL_FILE"));
    assert!(!variables.contains_key("AVOUCH_BROWSER_JAIL"), "it runs no browsers");
    let volumes = pod["spec"]["volumes"].as_array().unwrap().iter();
    let names: Vec<_> = volumes.map(|volume| text(&volume["name"])).collect();
    assert_eq!(names, ["data", "temporary", "keys", "settings"]);
    // It serves nothing but metrics, by which it is examined.
    assert_eq!(container["ports"].as_array().unwrap().len(), 1);
    assert_eq!(container["livenessProbe"]["httpGet"]["port"], container["ports"][0]["name"]);
}

/// Without a certificate, 0 browsers are refused.
#[test]
fn a_number_of_browsers_is_for_instances_alone() {
    let relaying =
        json!({ "settings": { "browsers": 0 }, "instances": { "secretName": "instances" } });
    for values in [merged(&minimal(), &relaying), apart()] {
        for (component, pod) in rendered(&values).pods() {
            let has_number =
                variables(&pod["spec"]["containers"][0]).contains_key("AVOUCH_BROWSERS");
            let is_instance = ["service", "browser-host"].contains(&component);
            assert_eq!(has_number, is_instance, "{component}");
        }
    }
}

/// The migration is a hook that runs before anything else of the release is created: it would wait forever
/// for the Secret of a Certificate of the release.
#[test]
fn the_migration_needs_no_certificate() {
    let rendered = rendered(&apart());
    let pod = rendered.pod("migration");
    assert!(!pod.to_string().contains("/run/secrets/instances"), "{pod}");
    for volume in pod["spec"]["volumes"].as_array().unwrap() {
        let secret = volume["secret"]["secretName"].as_str();
        assert!(secret.is_none_or(|secret| secret == "avouch"), "{volume}");
    }
}

#[test]
fn certificates_are_for_the_names_that_the_service_expects() {
    let source = root().join("crates/app/src/config/instances.rs");
    let source = fs::read_to_string(source).unwrap();
    let constant = |name: &str| {
        let (_, value) = source.split_once(&format!("\nconst {name}: &str = \"")).unwrap();
        value.split_once('"').unwrap().0.to_owned()
    };
    let defaults = [constant("NAME"), constant("HOST_NAME")];
    let issuer = json!({ "certificates": { "issuer": { "name": "authority" } } });
    let own = ["instance.example", "browser-host.example"].map(str::to_owned);
    for (values, names, kind) in
        [(merged(&hosted(), &issuer), defaults, "Issuer"), (apart(), own, "ClusterIssuer")]
    {
        let rendered = rendered(&values);
        let usages = [&["server auth", "client auth"][..], &["server auth"]];
        let sides = ["service", "browser-host"].into_iter().zip(names).zip(usages);
        for ((component, name), usages) in sides {
            let certificate = &rendered.only_of("Certificate", component)["spec"];
            assert_eq!(strings(&certificate["dnsNames"]), [name]);
            // A host is connected to, and never connects.
            assert_eq!(
                strings(&certificate["usages"]),
                [&["digital signature"][..], usages].concat()
            );
            let issuer = json!({ "name": "authority", "kind": kind, "group": "cert-manager.io" });
            assert_eq!(certificate["issuerRef"], issuer);
            let volumes = rendered.pod(component)["spec"]["volumes"].as_array().unwrap();
            let volume = volumes.iter().find(|volume| volume["name"] == "instances").unwrap();
            assert_eq!(volume["secret"]["secretName"], certificate["secretName"], "{component}");
        }
    }
    assert!(rendered(&hosted()).all("Certificate").is_empty(), "Secrets of others are used");
    let relaying = rendered(&merged(&minimal(), &issuer));
    assert_eq!(relaying.all("Certificate").len(), 1, "instances relay, and there are no hosts");
}

#[test]
fn hosts_scale_by_processor_and_by_the_slots_that_they_report() {
    let scaled = |autoscaling: Value| {
        let values = json!({ "browserHosts": { "autoscaling": autoscaling } });
        let rendered = rendered(&merged(&hosted(), &values));
        let deployment = rendered.only_of("Deployment", "browser-host");
        assert!(deployment["spec"].get("replicas").is_none());
        let scaler = rendered.only_of("HorizontalPodAutoscaler", "browser-host");
        scaler["spec"]["metrics"].as_array().unwrap().clone()
    };
    let processor = json!({
        "type": "Resource",
        "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 60 } },
    });
    assert_eq!(scaled(json!({ "enabled": true })), [processor]);
    let slots = scaled(json!({ "enabled": true, "cpuUtilization": 0, "slotsUtilization": 70 }));
    let [slots] = &slots[..] else { panic!("{slots:?}") };
    let metric = text(&slots["pods"]["metric"]["name"]);
    let source = fs::read_to_string(root().join("crates/app/src/browser_hosts.rs")).unwrap();
    assert!(source.contains(&format!("gauge!(\"{metric}\")")), "hosts do not report {metric}");
    // 70 % of 16.
    assert_eq!(
        slots["pods"]["target"],
        json!({ "type": "AverageValue", "averageValue": "11200m" })
    );
    let fixed = rendered(&hosted());
    assert_eq!(fixed.only_of("Deployment", "browser-host")["spec"]["replicas"], 2);
    assert!(fixed.all("HorizontalPodAutoscaler").is_empty());
}

#[test]
fn hosts_that_cannot_work_are_refused() {
    let hosts = |values: Value| json!({ "browserHosts": values });
    let scaled = |values: Value| hosts(json!({ "autoscaling": values }));
    let refused = [
        (json!({ "instances": { "secretName": "" } }), "instances.secretName"),
        (hosts(json!({ "secretName": "" })), "browserHosts.secretName"),
        (hosts(json!({ "secretName": "instances" })), "must differ"),
        (hosts(json!({ "secretName": "avouch" })), "must differ"),
        (json!({ "browserSandbox": false }), "browserSandbox"),
        (json!({ "secrets": { "files": { "browser": "fleet" } } }), "exclude each other"),
        (json!({ "settings": { "browser_hosts": "a:1" } }), "settings.browser_hosts"),
        (json!({ "settings": { "browsers": 0 } }), "settings.browsers"),
        (json!({ "settings": { "browsers": "0" } }), "settings.browsers"),
        (
            json!({ "settings": { "instance_name": "browser-host.avouch.internal" } }),
            "browser_host_name must differ",
        ),
        (hosts(json!({ "port": 9090 })), "metrics.port"),
        (hosts(json!({ "browsers": 0 })), "/browserHosts/browsers"),
        (hosts(json!({ "replica": 3 })), "replica"),
        (scaled(json!({ "enabled": true, "cpuUtilization": 0 })), "slotsUtilization"),
        (scaled(json!({ "enabled": true, "maxReplicas": 1 })), "maxReplicas"),
        (
            merged(
                &scaled(json!({ "enabled": true, "slotsUtilization": 70 })),
                &json!({ "metrics": { "enabled": false } }),
            ),
            "metrics.enabled",
        ),
        (json!({ "certificates": { "renewBeforeHours": 2160 } }), "renewBeforeHours"),
        (json!({ "delivery": { "replicas": 0 } }), "/delivery/replicas"),
    ];
    let values: Vec<_> = refused.iter().map(|(wrong, _)| merged(&hosted(), wrong)).collect();
    for ((wrong, told), rendered) in refused.iter().zip(render(&values)) {
        let Err(error) = rendered else { panic!("{wrong} is accepted") };
        assert!(error.contains(told), "{wrong}: {error}");
    }
    let elsewhere = json!({ "settings": { "browser_hosts": "hosts.example:8444" } });
    let Some(Err(error)) = render(&[merged(&minimal(), &elsewhere)]).pop() else {
        panic!("instances use hosts without a certificate");
    };
    assert!(error.contains("instances.secretName"), "{error}");
}

#[test]
fn the_notes_say_where_browsers_run() {
    let notes = |values: &Value| rendered(values).notes;
    let hosted = notes(&hosted());
    assert!(hosted.contains("Each node of browser hosts needs the file"), "{hosted}");
    assert!(hosted.contains("deployment/demo-avouch-browsers"), "{hosted}");
    assert!(!hosted.contains("without the sandbox"), "{hosted}");
    let minimal = notes(&minimal());
    assert!(minimal.contains("Each node needs the file"), "{minimal}");
    assert!(!minimal.contains("browsers\n"), "{minimal}");
    assert!(notes(&apart()).contains("deployment/demo-avouch-delivery"));
}

/// Returns the bound of sessions that instances have.
fn browsers(rendered: &Rendered) -> Option<String> {
    let container = &rendered.pod("service")["spec"]["containers"][0];
    let variables = variables(container);
    variables.get("AVOUCH_BROWSERS").map(|entry| text(&entry["value"]).to_owned())
}
