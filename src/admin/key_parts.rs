//! The parameters that name a key of a limit, for the description of the API.

use std::collections::BTreeMap;

use utoipa::IntoParams;
use utoipa::PartialSchema;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::path::ParameterBuilder;
use utoipa::openapi::path::ParameterIn;
use utoipa::openapi::path::ParameterStyle;

/// One parameter for each part of the key. A handler reads them from the query by itself, because their names are those
/// of the selectors.
#[derive(Debug)]
pub(super) enum KeyParts {}

impl IntoParams for KeyParts {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let parts = ParameterBuilder::new()
            .name("parts")
            .parameter_in(ParameterIn::Query)
            .style(Some(ParameterStyle::Form))
            .explode(Some(true))
            .description(Some(DESCRIPTION))
            .schema(Some(BTreeMap::<String, String>::schema()));
        vec![parts.build()]
    }
}

const DESCRIPTION: &str = "One parameter for each part of the key, named by its selector: `client_ip=198.51.100.7&param.username=alice`. Values \
     are normalized like those of requests: names are case-folded and trimmed, addresses are cut to the prefix of the \
     key. Requests without that part share the empty value. A key of `[]` takes no parameters. For a limit with \
     `distinct`, one of its values may be given too, named the same way. Left out, it is the empty value.";
