//! The image and the Compose file: built, run, broken and repaired.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use crate::profile;
use crate::stand_ins::{StandIns, engine};
use crate::support::{Request, Response, docker, eventually, succeed};

#[test]
#[ignore = "takes minutes: packaging/test"]
fn the_compose_file_runs_two_gateways_that_count_as_one_and_survive_failures() {
    let stack = Stack::up();
    the_image_holds_the_gateway_and_no_more(&stack);
    eventually("every service is well", || SERVICES.iter().all(|service| stack.health(service) == "healthy"));
    for gateway in ["gateway-1", "gateway-2"] {
        assert!(!stack.log(gateway).contains("WARN"), "{}", stack.log(gateway));
    }
    limits_are_shared(&stack);
    a_crashed_gateway_is_back_and_the_other_serves_meanwhile(&stack);
    a_redis_that_is_gone_takes_nobody_with_it(&stack);
    a_change_of_the_mounted_file_is_in_force(&stack);
}

const SERVICES: [&str; 4] = ["gateway-1", "gateway-2", "application", "redis"];

fn the_image_holds_the_gateway_and_no_more(stack: &Stack) {
    let about = |field: &str| docker(&["image", "inspect", "--format", field, &stack.image]);
    assert_eq!(about("{{.Config.User}}"), "65532:65532");
    let revision = about(r#"{{index .Config.Labels "org.opencontainers.image.revision"}}"#);
    let version = docker(&["run", "--rm", &stack.image, "--version"]);
    assert_eq!(version, format!("portcullis {} (commit {revision})", env!("CARGO_PKG_VERSION")));
    // The configurations are those of this repository, without the keys and tokens of its tests.
    let container = stack.container("gateway-1");
    let export = format!("docker export {container} | tar --list");
    let files = succeed(Command::new("sh").args(["-c", &export]));
    assert!(files.lines().any(|file| file == "etc/portcullis/portcullis.yaml"), "{files}");
    for file in files.lines().filter(|file| file.starts_with("etc/portcullis/")) {
        assert!(!file.ends_with("-token") && !file.contains("/tls/") && !file.ends_with(".service"), "{file}");
    }
    assert!(
        !files.lines().any(|file| file.ends_with("bin/sh") || file.ends_with("bin/cargo")),
        "a shell, or a toolchain"
    );
    let written =
        Command::new("docker").args(["exec", &container, "portcullis", "man", "/etc/portcullis/man"]).output();
    let written = String::from_utf8(written.expect("docker is installed").stderr).expect("text");
    assert!(written.contains("Read-only file system"), "{written}");
}

fn limits_are_shared(stack: &Stack) {
    let (one, other) = (stack.addresses["gateway-1"].to_string(), stack.addresses["gateway-2"].to_string());
    let lines = documented("for gateway in").replace("127.0.0.1:8080", &one).replace("127.0.0.1:8081", &other);
    let statuses = succeed(Command::new("sh").args(["-ec", &lines]));
    assert_eq!(statuses.split_whitespace().collect::<Vec<_>>(), ["401", "401", "401", "401", "401", "429"]);
    assert_eq!(stack.guess("gateway-1").status, 429);
    assert_eq!(stack.ask("gateway-2", "GET").status, 200);
}

fn a_crashed_gateway_is_back_and_the_other_serves_meanwhile(stack: &Stack) {
    let before = stack.process("gateway-1");
    rustix::process::kill_process(before, Signal::KILL).expect("it runs");
    assert_eq!(stack.guess("gateway-2").status, 429, "the other one still knows");
    eventually("the engine has started it again", || {
        stack.health("gateway-1") == "healthy" && stack.process("gateway-1") != before
    });
    assert_eq!(stack.guess("gateway-1").status, 429, "counts are kept by Redis");
}

fn a_redis_that_is_gone_takes_nobody_with_it(stack: &Stack) {
    let redis = stack.container("redis");
    docker(&["stop", &redis]);
    for gateway in ["gateway-1", "gateway-2"] {
        assert_eq!(stack.ask(gateway, "GET").status, 200, "{gateway}");
        assert_ne!(stack.guess(gateway).status, 503, "{gateway} counts by itself");
    }
    docker(&["start", &redis]);
    eventually("the gateways have found it again", || {
        stack.health("redis") == "healthy"
            && ["gateway-1", "gateway-2"].iter().all(|gateway| stack.log(gateway).contains("is back, it was down for"))
    });
}

fn a_change_of_the_mounted_file_is_in_force(stack: &Stack) {
    let file = stack.folder.path().join("config/compose.yaml");
    let config = fs::read_to_string(&file).expect("the file");
    fs::write(&file, config.replace("rate: 5/minute", "rate: 3/minute")).expect("the file");
    for gateway in ["gateway-1", "gateway-2"] {
        eventually("the change is in force", || {
            let policy = stack.guess(gateway);
            policy.header("ratelimit-policy").is_some_and(|policy| policy.contains("q=3;"))
        });
    }
    fs::write(&file, config.replace("rate: 5/minute", "rate: many")).expect("the file");
    eventually("a mistake is said", || stack.log("gateway-1").contains("many"));
    assert_eq!(stack.ask("gateway-1", "GET").status, 200, "what was in force stays");
}

/// The lines for a shell in the book that have these words.
#[track_caller]
fn documented(words: &str) -> String {
    let page = fs::read_to_string("docs/src/redis.md").expect("the page on Redis");
    let block = page.split("```").find_map(|block| block.strip_prefix("sh\n").filter(|lines| lines.contains(words)));
    block.expect("a block with these words").to_owned()
}

/// The services of the Compose file, on free ports of this machine; removed with their images when it is dropped.
struct Stack {
    folder: TempDir,
    project: String,
    image: String,
    addresses: BTreeMap<&'static str, SocketAddr>,
    _images: StandIns,
}

impl Stack {
    #[track_caller]
    fn up() -> Self {
        let images = StandIns::make("image");
        let folder = tempfile::tempdir().expect("a folder");
        let copy = format!(
            "git ls-files -z | tar --create --null --files-from - | tar --extract --directory {}",
            folder.path().display()
        );
        succeed(Command::new("sh").args(["-c", &copy]));
        let project = format!("portcullis-test-{}", std::process::id());
        let image = format!("{project}-image");
        let file = folder.path().join("docker-compose.yml");
        let mut text =
            fs::read_to_string(&file).expect("the file").replace("image: portcullis", &format!("image: {image}"));
        let mut addresses = BTreeMap::new();
        for (gateway, published) in [("gateway-1", "127.0.0.1:8080:"), ("gateway-2", "127.0.0.1:8081:")] {
            let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
            assert!(text.contains(published));
            text = text.replace(published, &format!("{free}:"));
            addresses.insert(gateway, free);
        }
        fs::write(&file, text).expect("the file");
        let stack = Self { folder, project, image, addresses, _images: images };
        let commit = succeed(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]));
        let named = format!("PORTCULLIS_COMMIT={commit}");
        succeed(&mut stack.compose(&["build", "--build-arg", &named]));
        succeed(&mut stack.compose(&["up", "--detach"]));
        stack
    }

    /// Compose, as a part of Docker's client or as a program of its own.
    fn compose(&self, arguments: &[&str]) -> Command {
        let is_part = Command::new("docker").args(["compose", "version"]).stderr(Stdio::null()).output();
        let mut compose = if is_part.is_ok_and(|output| output.status.success()) {
            let mut docker = Command::new("docker");
            docker.arg("compose");
            docker
        } else {
            Command::new("docker-compose")
        };
        compose.args(["--project-name", &self.project]).args(arguments).current_dir(self.folder.path());
        engine(&mut compose).env("PROFILE", profile()).env("COMPOSE_DOCKER_CLI_BUILD", "1");
        compose
    }

    #[track_caller]
    fn container(&self, service: &str) -> String {
        succeed(&mut self.compose(&["ps", "--quiet", service]))
    }

    fn health(&self, service: &str) -> String {
        docker(&["inspect", "--format", "{{.State.Health.Status}}", &self.container(service)])
    }

    fn process(&self, service: &str) -> Pid {
        let number = docker(&["inspect", "--format", "{{.State.Pid}}", &self.container(service)]);
        Pid::from_raw(number.parse().expect("a number")).unwrap_or(Pid::INIT)
    }

    fn ask(&self, gateway: &str, method: &str) -> Response {
        Request::new(self.addresses[gateway], method, "/login").send()
    }

    fn guess(&self, gateway: &str) -> Response {
        let request = Request::new(self.addresses[gateway], "POST", "/login");
        request.body("application/x-www-form-urlencoded", "username=alice&password=wrong").send()
    }

    fn log(&self, service: &str) -> String {
        succeed(Command::new("sh").args(["-c", &format!("docker logs {} 2>&1", self.container(service))]))
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.compose(&["logs", "--tail", "20"]).status();
        }
        let _ =
            self.compose(&["down", "--volumes", "--timeout", "1"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = Command::new("docker").args(["rmi", &self.image]).stdout(Stdio::null()).status();
    }
}
