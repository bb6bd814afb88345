//! Fields to and from the types of the library `http`, for the libraries that want these.

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri};

use super::{Fields, Name, RequestHead, ResponseHead};

impl Fields {
    /// Adds a field.
    pub fn append_header(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.append(Name::of(name.as_str()), value.as_bytes());
    }

    /// The fields as a map.
    pub fn to_header_map(&self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.len());
        for field in self.iter() {
            let name = HeaderName::from_bytes(field.name.as_str().as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
                map.append(name, value);
            }
        }
        map
    }
}

impl RequestHead {
    /// The target in origin form, as the library takes it: bytes that it refuses, though clients send them
    /// (`/?q={"a":1}`, `/a<b`), are escaped. `None`: it is no target.
    pub fn to_path_and_query(&self) -> Option<PathAndQuery> {
        const REFUSED: [char; 4] = ['"', '<', '>', '`'];
        let target = self.path_and_query();
        if !target.contains(REFUSED) {
            return target.parse().ok();
        }
        let mut escaped = String::with_capacity(target.len() + ROOM);
        for char in target.chars() {
            match char {
                '"' => escaped.push_str("%22"),
                '<' => escaped.push_str("%3C"),
                '>' => escaped.push_str("%3E"),
                '`' => escaped.push_str("%60"),
                other => escaped.push(other),
            }
        }
        escaped.parse().ok()
    }

    /// The request with a body. Its target is in origin form.
    pub fn to_http<B>(&self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.to_path_and_query().map(Uri::from).unwrap_or_default();
        *request.version_mut() = self.version;
        *request.headers_mut() = self.fields.to_header_map();
        request
    }
}

/// In bytes: enough for a few escapes.
const ROOM: usize = 32;

impl ResponseHead {
    pub fn from_headers(status: StatusCode, headers: &HeaderMap) -> Self {
        Self::new(status, Fields::from(headers))
    }
}

impl From<&HeaderMap> for Fields {
    fn from(map: &HeaderMap) -> Self {
        let mut fields = Self::default();
        for (name, value) in map {
            fields.append_header(name, value);
        }
        fields
    }
}
