//! Runs `render.py`, which has the engine of Helm and the schemas of Kubernetes and Compose.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use acceptance::root;
use serde_json::{Value, json};

/// The oldest version of Kubernetes that the chart supports, and the newest one that is known.
pub(crate) const KUBERNETES: [&str; 2] = ["1.33", "1.37"];

/// What the chart becomes with some values.
pub(crate) struct Rendered {
    pub(crate) objects: Vec<Value>,
    pub(crate) notes: String,
    /// What the schemas of Kubernetes refuse.
    pub(crate) faults: Vec<String>,
}

impl Rendered {
    /// Returns the only object of a kind.
    pub(crate) fn only(&self, kind: &str) -> &Value {
        let [object] = self.all(kind)[..] else { panic!("there is not one {kind}") };
        object
    }

    pub(crate) fn all(&self, kind: &str) -> Vec<&Value> {
        self.objects.iter().filter(|object| object["kind"] == kind).collect()
    }

    /// Returns the objects of a kind that belong to a component.
    pub(crate) fn of(&self, kind: &str, component: &str) -> Vec<&Value> {
        let objects = self.all(kind).into_iter();
        objects.filter(|object| component_of(object) == component).collect()
    }

    /// Returns the only object of a kind that belongs to a component.
    pub(crate) fn only_of(&self, kind: &str, component: &str) -> &Value {
        let [object] = self.of(kind, component)[..] else {
            panic!("there is not one {kind} of {component}")
        };
        object
    }

    /// Returns the templates of pods, each with the component to which the pods belong.
    pub(crate) fn pods(&self) -> Vec<(&str, &Value)> {
        let template =
            |object: &'_ Value| object.pointer("/spec/template").is_some_and(Value::is_object);
        let objects = self.objects.iter().filter(|object| template(object));
        let pods = objects.map(|object| &object["spec"]["template"]);
        pods.map(|pod| (component_of(pod), pod)).collect()
    }

    /// Returns the template of the pods of a component.
    pub(crate) fn pod(&self, component: &str) -> &Value {
        let pods = self.pods().into_iter().filter(|(name, _)| *name == component);
        let [(_, pod)] = pods.collect::<Vec<_>>()[..] else {
            panic!("there are no pods of {component}")
        };
        pod
    }
}

fn component_of(object: &Value) -> &str {
    text(&object["metadata"]["labels"]["app.kubernetes.io/component"])
}

/// Renders the chart once for each set of values; an error is the reason why values are refused.
pub(crate) fn render(values: &[Value]) -> Vec<Result<Rendered, String>> {
    let chart = root().join("deploy/helm/avouch");
    let arguments = [&["chart", chart.to_str().unwrap()], &KUBERNETES[..]].concat();
    let rendered = run(&arguments, &json!(values).to_string());
    let rendered = rendered.as_array().unwrap().iter().map(|one| match one["error"].as_str() {
        Some(error) => Err(error.to_owned()),
        None => Ok(Rendered {
            objects: one["objects"].as_array().unwrap().clone(),
            notes: text(&one["notes"]).to_owned(),
            faults: strings(&one["faults"]),
        }),
    });
    rendered.collect()
}

/// Renders the chart with values that are accepted.
pub(crate) fn rendered(values: &Value) -> Rendered {
    render(std::slice::from_ref(values)).pop().unwrap().unwrap()
}

/// Returns the findings of `helm lint --strict`.
pub(crate) fn lint(values: &Value) -> Value {
    let chart = root().join("deploy/helm/avouch");
    run(&["lint", chart.to_str().unwrap()], &values.to_string())
}

/// Parses a compose file whose variables were replaced.
pub(crate) fn compose(file: &str) -> Result<Value, String> {
    let parsed = run(&["compose"], file);
    parsed["error"].as_str().map_or(Ok(parsed.clone()), |error| Err(error.to_owned()))
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

pub(crate) fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|one| text(one).to_owned()).collect()
}

fn run(arguments: &[&str], input: &str) -> Value {
    let python = root().join("target/tools/packaging-python/bin/python");
    assert!(
        python.exists(),
        "install tests/packaging/requirements.txt into target/tools/packaging-python"
    );
    let mut renderer = Command::new(python)
        .arg(root().join("tests/packaging/render.py"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    renderer.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = renderer.wait_with_output().unwrap();
    assert!(output.status.success(), "render.py {arguments:?}: {}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}
