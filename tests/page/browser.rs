//! A browser with one page, driven by its keyboard.

use std::collections::BTreeSet;
use std::time::Duration;

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use url::Url;

use crate::driver::{ChromiumCommand, Driver};
use crate::support::found_within;

/// The longest that a page takes to show what it is told, with other browsers on the same cores.
const PATIENCE: Duration = Duration::from_secs(60);

/// Closed when it is dropped.
#[derive(Debug)]
pub(crate) struct Browser {
    runtime: Runtime,
    client: Option<Client>,
    _driver: Driver,
}

impl Browser {
    /// With an empty page, as wide as a desk's, in light colours.
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let driver = Driver::start();
        let arguments =
            ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"];
        let capabilities = json!({
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        });
        let Value::Object(capabilities) = capabilities else { unreachable!("it is an object") };
        let client = runtime
            .block_on(ClientBuilder::new(HttpConnector::new()).capabilities(capabilities).connect(&driver.url()));
        let browser = Self { runtime, client: Some(client.expect("chromium starts")), _driver: driver };
        browser.look(1280, "light");
        browser
    }

    fn client(&self) -> &Client {
        self.client.as_ref().expect("it is open")
    }

    /// Opens a page.
    pub(crate) fn open(&self, url: &str) {
        self.runtime.block_on(self.client().goto(url)).expect("a page");
    }

    /// Sets the width of the window and the colour scheme.
    pub(crate) fn look(&self, width: u32, scheme: &str) {
        let metrics = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", &media);
    }

    /// Holds back the answers of the API, until [`Browser::release_answers`].
    pub(crate) fn hold_answers(&self) {
        self.devtools("Fetch.enable", &json!({"patterns": [{"urlPattern": "*/api/v1/*"}]}));
    }

    pub(crate) fn release_answers(&self) {
        self.devtools("Fetch.disable", &json!({}));
    }

    /// Answers this path of the API from the next page on, in place of the gateway: with what is otherwise rare.
    pub(crate) fn answer(&self, path: &str, answer: &Value) {
        let source = format!(
            "{{ const ask = window.fetch;
                window.fetch = (path, options) => path.startsWith('/api/v1/{path}')
                    ? Promise.resolve(new Response({:?})) : ask(path, options); }}",
            answer.to_string()
        );
        self.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": source}));
    }

    fn devtools(&self, command: &str, parameters: &Value) {
        self.issue("goog/cdp/execute", json!({"cmd": command, "params": parameters}));
    }

    fn issue(&self, path: &'static str, body: Value) -> Value {
        self.runtime.block_on(self.client().issue_cmd(ChromiumCommand { path, body })).expect("chromium knows it")
    }

    /// What a script returns.
    pub(crate) fn script(&self, script: &str) -> Value {
        self.runtime.block_on(self.client().execute(script, Vec::new())).expect("a script of ours")
    }

    /// The text of the first element that a selector finds, as it is shown. Empty: it is hidden, or there is none.
    pub(crate) fn text(&self, selector: &str) -> String {
        let script = format!(
            "const node = document.querySelector({selector:?}); return node?.checkVisibility() ? node.innerText : ''"
        );
        let text = self.script(&script);
        text.as_str().expect("a text").to_owned()
    }

    /// The texts of the cells of a table, row by row.
    pub(crate) fn rows(&self, root: &str) -> Vec<Vec<String>> {
        let script = format!(
            "return [...document.querySelectorAll('{root} tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))"
        );
        serde_json::from_value(self.script(&script)).expect("texts in rows")
    }

    /// Waits until the text of an element contains this.
    #[track_caller]
    pub(crate) fn says(&self, selector: &str, wanted: &str) {
        found_within(PATIENCE, || {
            let shown = self.text(selector);
            let is_shown = shown.contains(wanted).then_some(());
            is_shown.ok_or_else(|| format!("{selector} says `{shown}`, and not `{wanted}`"))
        });
    }

    pub(crate) fn title(&self) -> String {
        self.runtime.block_on(self.client().title()).expect("a title")
    }

    /// Presses Tab until an element that this selector finds has the focus.
    #[track_caller]
    pub(crate) fn tab_to(&self, selector: &str) {
        let is_there = format!("return document.activeElement?.matches({selector:?}) ?? false");
        for _ in 0..MAX_TABS {
            if self.script(&is_there) == Value::Bool(true) {
                let outline = self.script("return getComputedStyle(document.activeElement).outlineStyle");
                assert_ne!(outline, "none", "the focus on {selector} is not visible");
                return;
            }
            self.press(Key::Tab);
        }
        panic!("the keyboard does not reach {selector}");
    }

    /// Types into the element that has the focus, in place of what stands there.
    pub(crate) fn write(&self, text: &str) {
        self.script("document.activeElement.select?.()");
        self.press(Key::Delete);
        self.type_text(text);
    }

    /// Types, as into a list of choices.
    pub(crate) fn type_text(&self, text: &str) {
        for character in text.chars() {
            self.key(character);
        }
    }

    pub(crate) fn press(&self, key: Key) {
        self.key(char::from(key));
    }

    fn key(&self, value: char) {
        let keys = KeyActions::new("keyboard".to_owned()).then(KeyAction::Down { value }).then(KeyAction::Up { value });
        self.runtime.block_on(self.client().perform_actions(keys)).expect("a key");
    }

    /// What the browser wrote to its console since the last time, without what it says of connections.
    pub(crate) fn console(&self) -> Vec<String> {
        let entries = self.log("browser");
        entries.iter().filter_map(|entry| entry["message"].as_str().map(str::to_owned)).collect()
    }

    /// The host and port of everything that it asked for since the last time.
    pub(crate) fn asked(&self) -> BTreeSet<String> {
        let entries = self.log("performance");
        let messages =
            entries.iter().filter_map(|entry| serde_json::from_str::<Value>(entry["message"].as_str()?).ok());
        let requests = messages.filter(|message| message["message"]["method"] == "Network.requestWillBeSent");
        let urls =
            requests.filter_map(|message| Url::parse(message["message"]["params"]["request"]["url"].as_str()?).ok());
        urls.map(|url| format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(0)))
            .collect()
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        self.issue("se/log", json!({"type": kind})).as_array().expect("a list").clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            // The driver ends the browser that it cannot be told to close.
            let _ = self.runtime.block_on(client.close());
        }
    }
}

/// More than the page has controls.
const MAX_TABS: usize = 200;
