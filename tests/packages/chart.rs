//! The Helm chart: rendered by Helm's own engine, valid for Kubernetes, and consistent.

use std::fs;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::binary;

/// The oldest that the chart names and the newest whose schemas are at hand.
const KUBERNETES: [&str; 2] = ["1.25", "1.36"];

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn the_parts_of_the_chart_fit_together() {
    let chart = Chart::render(&json!({
        "admin": {"token": TOKEN},
        "autoscaling": {"enabled": true},
        "serviceMonitor": {"enabled": true, "labels": {"release": "prometheus"}},
        "service": {"type": "LoadBalancer"},
    }));
    let deployment = chart.only("Deployment");
    assert_eq!(deployment["spec"].get("replicas"), None, "the autoscaler says how many");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert!(holds(labels, &deployment["spec"]["selector"]["matchLabels"]));
    assert!(holds(labels, &chart.only("PodDisruptionBudget")["spec"]["selector"]["matchLabels"]));
    let scaled = &chart.only("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"];
    assert_eq!((&scaled["kind"], &scaled["name"]), (&json!("Deployment"), name(deployment)));

    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["image"], concat!("portcullis:", env!("CARGO_PKG_VERSION")));
    chart.named("Secret", &container["envFrom"][0]["secretRef"]["name"]);
    let volumes = pod["volumes"].as_array().expect("a list");
    for mount in container["volumeMounts"].as_array().expect("a list") {
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).expect("a volume for each mount");
        if let Some(map) = volume.get("configMap") {
            assert!(chart.named("ConfigMap", &map["name"])["data"].get("portcullis.yaml").is_some());
        } else if let Some(secret) = volume.get("secret") {
            assert_eq!(chart.named("Secret", &secret["secretName"])["stringData"]["token"], TOKEN);
        }
    }
    let ports: Vec<&Value> = container["ports"].as_array().expect("a list").iter().map(|port| &port["name"]).collect();
    for service in chart.all("Service") {
        assert!(holds(labels, &service["spec"]["selector"]));
        assert!(ports.contains(&&service["spec"]["ports"][0]["targetPort"]));
    }
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["port"], "admin", "{probe}");
    }

    let monitor = chart.only("ServiceMonitor");
    assert_eq!(monitor["metadata"]["labels"]["release"], "prometheus");
    let monitored: Vec<&Value> = chart
        .all("Service")
        .filter(|service| holds(&service["metadata"]["labels"], &monitor["spec"]["selector"]["matchLabels"]))
        .collect();
    assert_eq!(monitored.len(), 1, "metrics are scraped once");
    assert_eq!(monitored[0]["spec"]["ports"][0]["name"], monitor["spec"]["endpoints"][0]["port"]);
}

#[test]
fn the_configuration_of_the_chart_is_right_and_a_pod_may_do_little() {
    let chart = Chart::render(&json!({"admin": {"token": TOKEN}}));
    assert_eq!(chart.only("Deployment")["spec"]["replicas"], 2);
    assert!(chart.all("HorizontalPodAutoscaler").chain(chart.all("ServiceMonitor")).next().is_none());
    let pod = &chart.only("Deployment")["spec"]["template"]["spec"];
    let (user, container) = (&pod["securityContext"], &pod["containers"][0]["securityContext"]);
    assert_eq!((&user["runAsNonRoot"], &user["runAsUser"]), (&json!(true), &json!(65532)), "as the image");
    assert_eq!(container["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(
        (&container["readOnlyRootFilesystem"], &container["allowPrivilegeEscalation"]),
        (&json!(true), &json!(false))
    );

    let folder = tempfile::tempdir().expect("a folder");
    let config = chart.only("ConfigMap")["data"]["portcullis.yaml"].as_str().expect("text");
    assert!(config.contains("/run/secrets/portcullis/token") && !config.contains(TOKEN));
    let token = folder.path().join("token");
    fs::write(&token, TOKEN).expect("a file");
    // As it is mounted.
    fs::set_permissions(&token, Permissions::from_mode(0o440)).expect("a file of ours");
    fs::write(folder.path().join("portcullis.yaml"), config.replace("/run/secrets/portcullis/", "")).expect("a file");
    let mut check = Command::new(binary());
    let environment = chart.named("Secret", &json!("shop-portcullis-environment"));
    for (variable, value) in environment["stringData"].as_object().expect("variables") {
        check.env(variable, value.as_str().expect("text"));
    }
    let checked =
        check.args(["check", "--deny-warnings"]).current_dir(folder.path()).output().expect("the binary starts");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn secrets_may_be_of_ones_own_and_what_is_missing_is_said() {
    let chart = Chart::render(&json!({"admin": {"existingSecret": "mine"}, "environment": {"existingSecret": "ours"}}));
    assert_eq!(chart.all("Secret").count(), 0);
    let pod = chart.only("Deployment")["spec"]["template"]["spec"].to_string();
    assert!(pod.contains(r#""secretName":"mine""#) && pod.contains(r#""secretRef":{"name":"ours"}"#), "{pod}");
    for (values, complaint) in [
        (json!({}), "admin.token is missing"),
        (json!({"admin": {"token": TOKEN}, "replica": 3}), "'replica' not allowed"),
        (json!({"admin": {"token": TOKEN}, "config": {"admin": {"address": "nowhere"}}}), "/config/admin/address"),
    ] {
        let said = String::from_utf8(render(&values).stderr).expect("text");
        assert!(said.contains(complaint), "{said}");
    }
    let alone = json!({"admin": {"token": TOKEN}, "config": {"store": null}});
    let (together, alone) = (Chart::render(&json!({"admin": {"token": TOKEN}})), Chart::render(&alone));
    assert!(!together.notes.contains(&warning()));
    assert!(alone.notes.contains(&warning()), "{}", alone.notes);
}

#[test]
fn the_chart_is_of_the_version_of_the_crate() {
    let chart = fs::read_to_string("packaging/helm/portcullis/Chart.yaml").expect("the file");
    for key in ["version", "appVersion"] {
        assert!(chart.contains(&format!("\n{key}: {}\n", env!("CARGO_PKG_VERSION"))), "{key}");
    }
}

/// What the notes say where two gateways count each by itself, as it is written in them.
fn warning() -> String {
    let notes = fs::read_to_string("packaging/helm/portcullis/templates/NOTES.txt").expect("the file");
    let warning = notes.lines().find(|line| line.starts_with("NOTE: ")).expect("a warning");
    warning.replace("{{ .Values.replicas }}", "2")
}

/// What a release called `shop` consists of.
struct Chart {
    resources: Vec<Value>,
    notes: String,
}

impl Chart {
    #[track_caller]
    fn render(values: &Value) -> Self {
        let output = render(values);
        assert!(output.status.success(), "{values}: {}", String::from_utf8_lossy(&output.stderr));
        let rendered: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let resources = rendered["resources"].as_array().expect("a list").clone();
        Self { resources, notes: rendered["notes"].as_str().expect("text").to_owned() }
    }

    fn all(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.resources.iter().filter(move |resource| resource["kind"] == kind)
    }

    #[track_caller]
    fn only(&self, kind: &str) -> &Value {
        let found: Vec<&Value> = self.all(kind).collect();
        assert_eq!(found.len(), 1, "{kind}");
        found[0]
    }

    #[track_caller]
    fn named(&self, kind: &str, wanted: &Value) -> &Value {
        self.all(kind).find(|resource| name(resource) == wanted).unwrap_or_else(|| panic!("no {kind} {wanted}"))
    }
}

fn name(resource: &Value) -> &Value {
    &resource["metadata"]["name"]
}

/// Whether labels hold all that a selector asks for.
fn holds(labels: &Value, selector: &Value) -> bool {
    let asked = selector.as_object().expect("a selector");
    !asked.is_empty() && asked.iter().all(|(key, value)| labels.get(key) == Some(value))
}

fn render(values: &Value) -> Output {
    let mut python = Command::new("target/packages/bin/python");
    python.arg("tests/packages/render.py").args(KUBERNETES).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut python = python.stderr(Stdio::piped()).spawn().expect("packaging/test installs it");
    let mut input = python.stdin.take().expect("a pipe");
    write!(input, "{values}").expect("it reads");
    drop(input);
    python.wait_with_output().expect("it ends")
}
