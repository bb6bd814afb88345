//! As much of a browser as a login form needs: cookies and forms.

use std::collections::BTreeMap;

use crate::support::{Gateway, Request, Response};

/// The name under which the site is visited. Django knows it as its own while in development.
const SITE: &str = "shop.localhost";

#[derive(Debug)]
pub(crate) struct Browser<'a> {
    gateway: &'a Gateway,
    address: String,
    cookies: BTreeMap<String, String>,
}

impl<'a> Browser<'a> {
    /// A visitor from a loopback address.
    pub(crate) fn at(gateway: &'a Gateway, address: &str) -> Self {
        Self { gateway, address: address.to_owned(), cookies: BTreeMap::new() }
    }

    pub(crate) fn get(&mut self, target: &str) -> Response {
        let request = self.gateway.get(target);
        self.ask(request)
    }

    /// Fills in the form on a page and sends it back there.
    pub(crate) fn submit(&mut self, target: &str, fields: &[(&str, &str)]) -> Response {
        self.submit_from(target, target, fields)
    }

    /// Fills in a form that stands on one page and goes to another.
    pub(crate) fn submit_from(&mut self, page: &str, target: &str, fields: &[(&str, &str)]) -> Response {
        let page = self.get(page).text();
        let token = page.split("name=\"csrfmiddlewaretoken\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        let token = token.unwrap_or_else(|| panic!("no form on {target}: {page}"));
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("csrfmiddlewaretoken", token).extend_pairs(fields);
        let request = self.gateway.post(target).header("Origin", &format!("http://{SITE}")).form(&form.finish());
        self.ask(request)
    }

    /// Tries to log in.
    pub(crate) fn log_in(&mut self, name: &str, password: &str) -> Response {
        self.submit("/admin/login/?next=/admin/", &[("username", name), ("password", password), ("next", "/admin/")])
    }

    fn ask(&mut self, request: Request) -> Response {
        let mut request = request.host(SITE).from(&self.address);
        request = request.header("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
        if !self.cookies.is_empty() {
            let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.header("Cookie", &cookies.join("; "));
        }
        let response = request.send();
        for cookie in response.headers.all("set-cookie") {
            let pair = cookie.split(';').next().and_then(|pair| pair.split_once('='));
            let (name, value) = pair.expect("a cookie is a pair");
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        response
    }
}
