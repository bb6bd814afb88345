//! The description that a gateway gives of its admin API.

use serde_json::Value;

use super::json_schema::mistakes;
use super::{Gateway, Response};

/// The document at `/openapi.json`.
#[derive(Clone, Debug)]
pub struct ApiDescription(Value);

impl ApiDescription {
    /// Of a gateway without a token.
    #[track_caller]
    pub fn of(gateway: &Gateway) -> Self {
        let response = gateway.admin_request("GET", "/openapi.json").send();
        assert_eq!(response.status, 200, "{}", response.text());
        Self(response.json())
    }

    /// Every operation: its method, its path, and whether it needs no token.
    pub fn operations(&self) -> Vec<(String, String, bool)> {
        let paths = self.0["paths"].as_object().expect("paths");
        let operations = paths.iter().flat_map(|(path, operations)| {
            operations.as_object().expect("operations").iter().map(|(method, operation)| {
                let is_public = operation["security"].as_array().is_some_and(Vec::is_empty);
                (method.to_uppercase(), path.clone(), is_public)
            })
        });
        operations.collect()
    }

    /// The parameters of an operation that stand in the query, each with its schema.
    pub fn query_parameters(&self, method: &str, path: &str) -> Vec<(String, Value)> {
        let parameters = self.0["paths"][path][method.to_lowercase()]["parameters"].as_array();
        let in_query = parameters.into_iter().flatten().filter(|parameter| parameter["in"] == "query");
        let named =
            |parameter: &Value| (parameter["name"].as_str().expect("a name").to_owned(), parameter["schema"].clone());
        in_query.map(named).collect()
    }

    /// Whether an operation reads a body.
    pub fn takes_a_body(&self, method: &str, path: &str) -> bool {
        self.0["paths"][path][method.to_lowercase()]["requestBody"].is_object()
    }

    /// Whether an operation has a response of this status.
    pub fn describes(&self, method: &str, path: &str, status: u16) -> bool {
        self.0["paths"][path][method.to_lowercase()]["responses"][status.to_string()].is_object()
    }

    /// Fails if the response is not as this operation describes it: its status, its media type, and each field.
    #[track_caller]
    pub fn check(&self, method: &str, path: &str, response: &Response) {
        let operation = &self.0["paths"][path][method.to_lowercase()];
        assert!(operation.is_object(), "{method} {path} is not described");
        let mut described = &operation["responses"][response.status.to_string()];
        if let Some(reference) = described["$ref"].as_str() {
            described = self.0.pointer(reference.trim_start_matches('#')).expect("a reference has a target");
        }
        assert!(described.is_object(), "{method} {path} answers {}: {}", response.status, response.text());
        let Some(content) = described["content"].as_object() else {
            assert!(response.body.is_empty(), "{method} {path} answers {}: {}", response.status, response.text());
            return;
        };
        let media_type = response.header("content-type").unwrap_or_default();
        let media_type = media_type.split(';').next().expect("a first part");
        let Some(media) = content.get(media_type) else { panic!("{method} {path} answers `{media_type}`") };
        if media_type.ends_with("json") {
            let found = mistakes(&self.0, &media["schema"], &response.json());
            assert!(found.is_empty(), "{method} {path}: {found:#?}");
        }
    }
}
