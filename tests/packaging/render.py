"""Renders the chart with the engine of Helm, validates what comes out, and parses the compose file.

`render.py chart FOLDER VERSION…` reads a list of values as JSON and prints for each what was rendered:
`objects`, `notes`, and `faults` by the schemas of these versions of Kubernetes, and of cert-manager; or
`error` where the values are refused. `render.py lint FOLDER` reads values and prints the findings. `render.py compose`
reads a file after its variables were replaced, and prints it as JSON.
"""

import json
import pathlib
import sys

import compose_spec
import helm_python
import jsonschema
import kubernetes_validate
import yaml


def certificate_faults(item):
    schema = pathlib.Path(__file__).with_name("certificate.schema.json").read_text()
    errors = jsonschema.Draft202012Validator(json.loads(schema)).iter_errors(item)
    return [f"{item['kind']}: {error.message}" for error in errors]


def render(chart, values, versions):
    try:
        files = chart.render(values, name="demo", namespace="demo")
    except helm_python.HelmError as error:
        return {"error": str(error)}
    notes = [text for name, text in files.items() if name.endswith("NOTES.txt")]
    manifests = [text for name, text in sorted(files.items()) if not name.endswith(".txt")]
    objects = [item for text in manifests for item in yaml.safe_load_all(text) if item]
    faults = []
    for item in objects:
        if item["kind"] == "Certificate":
            faults += certificate_faults(item)
            continue
        for version in versions:
            try:
                kubernetes_validate.validate(item, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                faults.append(f"{item['kind']} in {version}: {error.message}")
    return {"objects": objects, "notes": "".join(notes), "faults": faults}


def main(what, *arguments):
    if what == "chart":
        folder, *versions = arguments
        with helm_python.Chart.load(folder) as chart:
            return [render(chart, values, versions) for values in json.load(sys.stdin)]
    if what == "lint":
        return helm_python.lint(arguments[0], json.load(sys.stdin), strict=True)
    try:
        return compose_spec.PyCompose.from_yaml(sys.stdin.read()).to_dict()
    except ValueError as error:
        return {"error": str(error)}


json.dump(main(*sys.argv[1:]), sys.stdout)
