//! Programs that read requests with the parsers of their language, and say what they have read.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io, thread};

use crate::case::Case;
use crate::support::Program;

/// A value that a reader has read.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Reading {
    /// Which of the program's parsers.
    pub(crate) reader: String,
    /// `query`, `form`, `param` for what may be either, `json`, `cookie` or `basic`.
    pub(crate) source: String,
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A running program.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Programs that read in several ways do so under several paths.
    paths: &'static [&'static str],
    program: Program,
}

/// A connection to a reader.
#[derive(Debug)]
pub(crate) struct Connection<'r> {
    reader: &'r Reader,
    stream: Option<TcpStream>,
}

type Start = fn(&Path, SocketAddr) -> Command;

const PROGRAMS: &[(&str, &[&str], Files, Start)] = &[
    ("php", &["/"], &[("reader.php", include_str!("php/reader.php"))], php),
    ("django", &["/"], &[COMMON, ("reader.py", include_str!("python/django_reader.py"))], gunicorn),
    ("flask", &["/"], &[COMMON, ("reader.py", include_str!("python/flask_reader.py"))], gunicorn),
    ("starlette", &["/"], &[COMMON, ("reader.py", include_str!("python/starlette_reader.py"))], uvicorn),
    ("aiohttp", &["/"], &[COMMON, ("reader.py", include_str!("python/aiohttp_reader.py"))], script),
    ("tornado", &["/"], &[COMMON, ("reader.py", include_str!("python/tornado_reader.py"))], script),
    ("node", &["/"], &[("reader.js", include_str!("node/reader.js"))], node),
    ("ruby", &["/"], &[("config.ru", include_str!("ruby/config.ru"))], puma),
    ("mojolicious", &["/"], &[("reader.pl", include_str!("perl/mojolicious.pl"))], mojolicious),
    ("plack", &["/"], &[("reader.psgi", include_str!("perl/reader.psgi"))], starman),
    ("go", &["/"], &[("reader.go", include_str!("go/reader.go"))], go),
    ("tomcat", &["/", "/raw"], TOMCAT, tomcat),
];

type Files = &'static [(&'static str, &'static str)];

const COMMON: (&str, &str) = ("common.py", include_str!("python/common.py"));

const TOMCAT: Files = &[
    ("apps/ROOT/WEB-INF/web.xml", include_str!("java/web.xml")),
    ("apps/ROOT/reader.jsp", include_str!("java/reader.jsp")),
    ("conf/web.xml", include_str!("java/defaults.xml")),
    ("apps/ROOT/WEB-INF/lib/.keep", ""),
    ("temp/.keep", ""),
];

/// Starts all of them.
pub(crate) fn start() -> Vec<Reader> {
    thread::scope(|scope| {
        let start = |(_, paths, files, command): &'static (&str, &[&str], Files, Start)| {
            scope.spawn(move || Reader { paths, program: Program::start(files, command) })
        };
        let starting: Vec<_> = PROGRAMS.iter().map(start).collect();
        starting.into_iter().map(|reader| reader.join().expect("it starts")).collect()
    })
}

impl Reader {
    pub(crate) fn connect(&self) -> Connection<'_> {
        Connection { reader: self, stream: None }
    }
}

impl Connection<'_> {
    /// Everything that the reader reads in this request. Nothing where it refuses.
    pub(crate) fn read(&mut self, case: &Case) -> Vec<Reading> {
        self.reader.paths.iter().flat_map(|path| self.read_at(case, path)).collect()
    }

    fn read_at(&mut self, case: &Case, path: &str) -> Vec<Reading> {
        let bytes = case.bytes(path);
        let kept = self.stream.take();
        let answer = kept.and_then(|stream| self.ask(stream, &bytes).ok());
        // A connection that was kept may have ended.
        let answer = answer.or_else(|| {
            let stream = TcpStream::connect(self.reader.program.address()).expect("the reader runs");
            self.ask(stream, &bytes).ok()
        });
        let rows: Vec<[String; 4]> = serde_json::from_slice(&answer.unwrap_or_default()).unwrap_or_default();
        let reading = |[reader, source, name, value]: [String; 4]| Reading { reader, source, name, value };
        rows.into_iter().map(reading).collect()
    }

    /// The body of the answer: nothing if it is not 200. The connection is kept if it can be.
    fn ask(&mut self, mut stream: TcpStream, bytes: &[u8]) -> io::Result<Vec<u8>> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(bytes)?;
        let mut answer = Vec::new();
        let head = loop {
            if let Some(end) = memchr::memmem::find(&answer, b"\r\n\r\n") {
                break String::from_utf8_lossy(&answer.drain(..end + 4).collect::<Vec<_>>()).to_ascii_lowercase();
            }
            some(&mut stream, &mut answer)?;
        };
        let length = head.split("\r\ncontent-length:").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
        let is_ok = head.split(' ').nth(1) == Some("200");
        match length {
            Some(length) if is_ok => {
                while answer.len() < length {
                    some(&mut stream, &mut answer)?;
                }
                self.stream = (!head.contains("\r\nconnection: close")).then_some(stream);
            }
            None if is_ok => while some(&mut stream, &mut answer).is_ok() {},
            _ => answer.clear(),
        }
        Ok(answer)
    }
}

fn some(stream: &mut TcpStream, read: &mut Vec<u8>) -> io::Result<()> {
    let mut chunk = [0; 16 * 1024];
    match stream.read(&mut chunk)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        length => {
            read.extend_from_slice(&chunk[..length]);
            Ok(())
        }
    }
}

/// No reader needs longer; some wait forever for more of a broken request.
const PATIENCE: Duration = Duration::from_secs(1);

fn php(_: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new("php");
    command.args(["-d", "display_errors=0", "-S", &address.to_string(), "reader.php"]);
    command
}

/// With the packages of `requirements.txt` here.
pub(crate) fn python() -> Command {
    let python: PathBuf = [env!("CARGO_MANIFEST_DIR"), "target", "readers", "python", "bin", "python"].iter().collect();
    assert!(python.exists(), "{} is missing: ./tests/run installs it", python.display());
    let mut command = Command::new(python);
    command.env("PYTHONUNBUFFERED", "1");
    command
}

fn gunicorn(folder: &Path, address: SocketAddr) -> Command {
    let mut command = python();
    command.env("HOME", folder).args(["-m", "gunicorn", "-k", "gthread", "--threads", "4", "--keep-alive", "60"]);
    command.args(["--bind", &address.to_string(), "reader"]);
    command
}

fn uvicorn(_: &Path, address: SocketAddr) -> Command {
    let mut command = python();
    command.args(["-m", "uvicorn", "--log-level", "critical", "--http", "httptools", "--timeout-keep-alive", "60"]);
    command.args(["--port", &address.port().to_string(), "reader:application"]);
    command
}

fn script(_: &Path, address: SocketAddr) -> Command {
    let mut command = python();
    command.args(["reader.py", &address.port().to_string()]);
    command
}

fn node(_: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new("node");
    command.env("NODE_PATH", "/usr/share/nodejs");
    command.args(["reader.js", &address.ip().to_string(), &address.port().to_string()]);
    command
}

fn puma(_: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new("puma");
    command.args(["--quiet", "--threads", "2:2", "--bind", &format!("tcp://{address}"), "config.ru"]);
    command
}

fn mojolicious(_: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new("perl");
    command.env("MOJO_MODE", "production");
    command.args(["reader.pl", "daemon", "-r", "1000000", "-i", "60", "-l", &format!("http://{address}")]);
    command
}

fn starman(_: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new("starman");
    command.args(["--workers", "2", "--max-requests", "1000000", "--keepalive-timeout", "60", "--env", "production"]);
    command.args(["--listen", &address.to_string(), "reader.psgi"]);
    command
}

fn go(folder: &Path, address: SocketAddr) -> Command {
    let mut command = go_program("reader", &folder.join("reader.go"));
    command.arg(address.to_string());
    command
}

/// Compiles a program. What is compiled is kept: nothing is compiled twice.
pub(crate) fn go_program(name: &str, source: &Path) -> Command {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/readers/go");
    fs::create_dir_all(&kept).expect("a folder in target");
    let program = kept.join(name);
    let mut build = Command::new("go");
    build.env("GOCACHE", kept.join("cache")).env("GO111MODULE", "off").env("CGO_ENABLED", "0");
    let ended = build.args(["build", "-o"]).arg(&program).arg(source).status();
    assert!(ended.expect("it is installed: tests/run does that").success(), "{} compiles", source.display());
    Command::new(program)
}

fn tomcat(folder: &Path, address: SocketAddr) -> Command {
    const HOME: &str = "/usr/share/tomcat10";
    let server = include_str!("java/server.xml").replace("PORT", &address.port().to_string());
    fs::write(folder.join("conf/server.xml"), server).expect("a file in the folder");
    fs::copy("/usr/share/java/gson.jar", folder.join("apps/ROOT/WEB-INF/lib/gson.jar"))
        .expect("it is installed: tests/run does that");
    let mut command = Command::new("java");
    command
        .arg("-XX:TieredStopAtLevel=1")
        .arg("-cp")
        .arg(format!("{HOME}/bin/bootstrap.jar:{HOME}/bin/tomcat-juli.jar"));
    command.args([format!("-Dcatalina.home={HOME}"), format!("-Dcatalina.base={}", folder.display())]);
    command.arg(format!("-Djava.io.tmpdir={}", folder.join("temp").display()));
    command.args(["org.apache.catalina.startup.Bootstrap", "start"]);
    command
}
