"""Renders the Helm chart with Helm's own engine, validates each resource against the strict schemas of Kubernetes, and prints
them as JSON. Values are JSON on standard input; the versions of Kubernetes are the arguments."""

import json
import sys

import helm_python
import kubernetes_validate
import yaml

values = json.load(sys.stdin)
with helm_python.Chart.load("packaging/helm/portcullis") as chart:
    chart.validate_schema(values)
    rendered = chart.render(values, name="shop", namespace="web")

resources = []
for template, text in rendered.items():
    if template.endswith(".yaml"):
        resources += [resource for resource in yaml.safe_load_all(text) if resource]
for resource in resources:
    # Of Prometheus' operator, not of Kubernetes: its one resource is looked at by the test itself.
    if resource["apiVersion"].startswith("monitoring.coreos.com/"):
        continue
    for version in sys.argv[1:]:
        kubernetes_validate.validate(resource, version, strict=True)
json.dump({"resources": resources, "notes": rendered.get("portcullis/templates/NOTES.txt", "")}, sys.stdout)
