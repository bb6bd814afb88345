//! docker-compose.yml, config/compose.yaml, the Dockerfile and the book agree, and their commands work: the tests start
//! the processes that Compose would start, on loopback.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use portcullis::config::diagnostic::Mistakes;
use portcullis::config::source::SourceText;
use portcullis::config::yaml;
use portcullis::config::yaml::{Content, Node};

use crate::demo::Application;
use crate::support::{Folder, Gateway, RedisServer, binary, eventually};

#[test]
fn limits_are_shared_by_the_gateways_of_the_compose_file() {
    let running = Running::start();
    let told = running.shell(&lines_of_the_book("redis.md", "for gateway in"));
    let statuses: Vec<&str> = told.split_whitespace().collect();
    assert_eq!(statuses, ["401", "401", "401", "401", "401", "429"]);
    let form = running.shell("curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8081/login");
    assert_eq!(form, "200");
}

#[test]
fn a_login_before_the_compose_file_is_throttled_as_in_the_demo() {
    let running = Running::start();
    let told = running.shell(&lines_of_the_book("redis.md", "for gateway in").replace(":8081", ":8080"));
    let statuses: Vec<&str> = told.split_whitespace().collect();
    assert_eq!(statuses, ["401", "401", "401", "401", "401", "429"]);
}

#[test]
fn every_service_is_well_by_its_own_health_check() {
    let running = Running::start();
    let services = Service::all();
    for name in ["gateway-1", "gateway-2"] {
        assert_eq!(services[name].health, Vec::<String>::new(), "the image's own asks the gateway");
    }
    assert_eq!(well(&image().health, "PORTCULLIS_ADMIN", running.gateways[0].admin()), Some(0));
    let application = &services["application"].health;
    assert_eq!((&*application[0], &*application[1]), ("CMD", "portcullis"));
    let asked =
        application[2..].iter().map(|word| word.replace("127.0.0.1:8000", &running.application.address().to_string()));
    let asked: Vec<String> = ["portcullis".to_owned()].into_iter().chain(asked).collect();
    assert_eq!(well(&asked, "NOTHING", running.application.address()), Some(0));
    let redis = &services["redis"].health;
    assert_eq!(redis[0], "CMD-SHELL");
    let port = format!("redis-cli -p {}", running.redis.address().port());
    running.shell(&redis[1].replace("redis-cli", &port));
}

#[test]
fn gateways_wait_for_what_they_need_and_only_they_are_reached_from_outside() {
    let services = Service::all();
    for (name, service) in &services {
        let is_gateway = name.starts_with("gateway-");
        let after: &[&str] = if is_gateway { &["application", "redis"] } else { &[] };
        assert_eq!(service.after, after, "{name} waits");
        assert_eq!(service.ports.len(), usize::from(is_gateway), "{name} publishes {:?}", service.ports);
        for port in &service.ports {
            let (host, container) = port.rsplit_once(':').expect("a host's and a container's");
            assert!(host.starts_with("127.0.0.1:"), "{name} is published to everyone: {port}");
            let config = fs::read_to_string("config/compose.yaml").expect("the file");
            assert!(config.contains(&format!("listen: ${{LISTEN:-0.0.0.0:{container}}}")), "{container}");
            assert!(image().exposed.contains(&container.to_owned()), "{container}");
        }
    }
    // The names in the configuration are those of the services.
    let config = fs::read_to_string("config/compose.yaml").expect("the file");
    assert!(config.contains("redis://redis:6379/0") && services.contains_key("redis"));
    assert!(config.contains("http://application:8000") && services["application"].command.join(" ").ends_with(":8000"));
}

#[test]
fn the_redis_of_the_compose_file_evicts_no_counters() {
    let running = Running::start();
    assert_eq!(running.redis.cli(&["CONFIG", "GET", "maxmemory-policy"]), "maxmemory-policy\nnoeviction");
    assert_eq!(running.redis.cli(&["CONFIG", "GET", "maxmemory"]), "maxmemory\n268435456");
}

#[test]
fn the_image_is_built_from_what_is_sent_and_run_by_nobody_in_particular() {
    let image = image();
    assert_eq!(image.user.as_deref(), Some("65532:65532"), "Kubernetes wants a number");
    assert_eq!(image.entrypoint, ["portcullis"]);
    assert!(image.build.contains("if [ \"$PROFILE\" = dist ]; then "));
    assert!(image.build.contains("install -D \"$(scripts/build-release --save-profile /profile $use)\""));
    assert!(image.build.contains("if [ -e /given/compiler.profdata ]; then use=\"--use-profile /given\"; fi"));
    assert!(image.build.contains("cargo install --locked --path . --profile \"$PROFILE\""));
    assert_eq!(image.labels["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(image.labels["description"], env!("CARGO_PKG_DESCRIPTION"));
    assert_eq!(image.labels["licenses"], "MIT");
    let ignored = fs::read_to_string(".dockerignore").expect("the file");
    let sent: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    assert!(ignored.lines().any(|line| line == "*"), "all else is left out");
    assert_eq!(sent.len(), image.copied.len());
    for path in &image.copied {
        assert!(Path::new(path).exists() && sent.contains(&&**path), "{path}");
    }
    // The package is whole without the rest.
    let folder = Folder::empty();
    for path in &image.copied {
        let copied = Command::new("cp").args(["-r", path]).arg(folder.path()).status();
        assert!(copied.expect("cp is installed").success());
    }
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]);
    let output = metadata.current_dir(folder.path()).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The processes of the compose file on free ports of this machine.
struct Running {
    redis: RedisServer,
    application: Application,
    gateways: Vec<Gateway>,
}

impl Running {
    fn start() -> Self {
        let services = Service::all();
        let redis = &services["redis"].command;
        assert_eq!(redis[0], "redis-server");
        let options: Vec<&str> = redis[1..].iter().map(String::as_str).collect();
        let redis = RedisServer::with_options(&options);
        let application = &services["application"].command;
        let application: Vec<String> =
            application.iter().map(|word| word.replace("0.0.0.0:8000", "127.0.0.1:0")).collect();
        let application = Application::start(&application);
        let config = fs::read_to_string("config/compose.yaml").expect("the file");
        let environment = [
            ("LISTEN", "127.0.0.1:0"),
            ("ADMIN", "127.0.0.1:0"),
            ("APPLICATION", &*format!("http://{}", application.address())),
            ("REDIS_URL", &redis.url()),
        ];
        let mut gateways = Vec::new();
        for name in ["gateway-1", "gateway-2"] {
            assert_eq!(services[name].command, ["run", "-c", "compose.yaml"]);
            gateways.push(Gateway::in_environment(&config, &[], &environment));
        }
        for gateway in &gateways {
            eventually("the gateway has found its Redis", || {
                let ready = crate::support::Request::new(gateway.admin(), "GET", "/readyz").send();
                ready.status == 200 && !String::from_utf8_lossy(&ready.body).contains("away")
            });
        }
        Self { redis, application, gateways }
    }

    /// Runs lines for a shell, with the published addresses replaced by those of the processes.
    #[track_caller]
    fn shell(&self, lines: &str) -> String {
        let lines = (lines.replace("127.0.0.1:8080", &self.gateways[0].address().to_string()))
            .replace("127.0.0.1:8081", &self.gateways[1].address().to_string());
        let output = Command::new("sh").args(["-ec", &lines]).output().expect("a shell");
        assert!(output.status.success(), "{lines}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }
}

/// How a health check of `portcullis` ends.
fn well(command: &[String], variable: &str, address: SocketAddr) -> Option<i32> {
    assert_eq!(command[0], "portcullis");
    let mut check = Command::new(binary());
    check.args(&command[1..]).env(variable, format!("http://{address}"));
    check.status().expect("the binary starts").code()
}

/// The block of commands on a page that has these words.
#[track_caller]
fn lines_of_the_book(page: &str, words: &str) -> String {
    let page = fs::read_to_string(format!("docs/src/{page}")).expect("the page");
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut blocks = blocks.filter(|block| block.contains(words));
    blocks.next().unwrap_or_else(|| panic!("no lines with `{words}`")).to_owned()
}

/// A service of the compose file.
#[derive(Debug, Default)]
struct Service {
    command: Vec<String>,
    health: Vec<String>,
    ports: Vec<String>,
    /// Services that are to be well before.
    after: Vec<String>,
}

impl Service {
    fn all() -> BTreeMap<String, Self> {
        // Configurations of this crate merge nothing: in its parser, the word for it is a key like any other under another name.
        let text = fs::read_to_string("docker-compose.yml").expect("the file").replace("<<:", "merged:");
        let mut mistakes = Mistakes::default();
        let source = mistakes.source(SourceText::new("docker-compose.yml", text.clone()));
        let tree = yaml::parse(&text, source, &|_| None, &mut mistakes).expect("a tree");
        let services = at(&tree, "services").expect("services");
        entries(services).map(|(name, service)| (name.to_owned(), Self::read(service))).collect()
    }

    fn read(service: &Node) -> Self {
        let list = |node: Option<&Node>| node.map(words).unwrap_or_default();
        let after = at(service, "depends_on").into_iter().flat_map(entries);
        let mut after: Vec<String> = after
            .inspect(|(name, condition)| {
                let condition = at(condition, "condition").map(word);
                assert_eq!(condition.as_deref(), Some("service_healthy"), "{name}");
            })
            .map(|(name, _)| name.to_owned())
            .collect();
        after.sort();
        Self {
            command: list(at(service, "command")),
            health: list(at(service, "healthcheck").and_then(|health| at(health, "test"))),
            ports: list(at(service, "ports")),
            after,
        }
    }
}

/// What stands under a key, there or in what is merged.
fn at<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let Content::Map(entries) = &node.content else { return None };
    let own = entries.iter().find(|(name, _)| name.text == key).map(|(_, value)| value);
    own.or_else(|| entries.iter().filter(|(name, _)| name.text == "merged").find_map(|(_, merged)| at(merged, key)))
}

fn entries(node: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let Content::Map(entries) = &node.content else { panic!("no map: {node:?}") };
    entries.iter().map(|(name, value)| (&*name.text, value))
}

fn words(node: &Node) -> Vec<String> {
    let Content::List(items) = &node.content else { panic!("no list: {node:?}") };
    items.iter().map(word).collect()
}

fn word(node: &Node) -> String {
    match &node.content {
        Content::Scalar(text) => text.clone(),
        other => panic!("no single value: {other:?}"),
    }
}

/// What the Dockerfile makes.
#[derive(Debug, Default)]
struct Image {
    build: String,
    /// Paths of this repository.
    copied: Vec<String>,
    user: Option<String>,
    exposed: Vec<String>,
    health: Vec<String>,
    entrypoint: Vec<String>,
    /// Of the Open Container Initiative, without its prefix.
    labels: BTreeMap<String, String>,
}

fn image() -> Image {
    let text = fs::read_to_string("Dockerfile").expect("the file");
    let text = text.replace("\\\n", " ");
    let mut image = Image::default();
    for line in text.lines() {
        let (instruction, rest) = line.split_once(' ').unwrap_or((line, ""));
        let list = |text: &str| serde_json::from_str::<Vec<String>>(text).expect("a list");
        match instruction {
            "COPY" if !rest.starts_with("--from=") => {
                let paths: Vec<&str> = rest.split(' ').collect();
                image.copied.extend(paths[..paths.len() - 1].iter().map(|path| (*path).to_owned()));
            }
            "RUN" => image.build.push_str(rest),
            "LABEL" => {
                let labels = rest.split("org.opencontainers.image.").filter_map(|label| label.trim().split_once('='));
                image.labels.extend(labels.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())));
            }
            "USER" => image.user = Some(rest.to_owned()),
            "EXPOSE" => image.exposed.push(rest.to_owned()),
            "HEALTHCHECK" => image.health = list(rest.split_once("CMD ").expect("a command").1),
            "ENTRYPOINT" => image.entrypoint = list(rest),
            _ => {}
        }
    }
    image
}
