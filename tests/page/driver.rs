//! `chromedriver`, and the commands of it that the W3C does not name.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use fantoccini::wd::WebDriverCompatibleCommand;
use serde_json::Value;
use url::Url;

/// A driver on a free port, until it is dropped.
#[derive(Debug)]
pub(crate) struct Driver {
    child: Child,
    port: u16,
}

impl Driver {
    pub(crate) fn start() -> Self {
        (0..10).find_map(|_| Self::try_start()).expect("chromedriver says its port")
    }

    /// `None`: it has ended, because another program has taken its port for the other family of addresses meanwhile.
    fn try_start() -> Option<Self> {
        let mut child = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium-driver is installed");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let mut driver = Self { child, port: 0 };
        // It writes nothing more that a full pipe could hold up.
        driver.port = lines.find_map(|line| line.strip_suffix('.')?.rsplit_once(" on port ")?.1.parse().ok())?;
        Some(driver)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command of Chromium's own.
#[derive(Debug)]
pub(crate) struct ChromiumCommand {
    pub(crate) path: &'static str,
    pub(crate) body: Value,
}

impl WebDriverCompatibleCommand for ChromiumCommand {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}
