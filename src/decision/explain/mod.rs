//! Which client, lists, route, limits and keys a request meets and why, for an operator.

mod answers;
mod descriptor;
mod explanation;
mod limit;
mod part;
mod request;
mod text;
mod tokens;

pub use self::answers::KnownClientsExplanation;
pub use self::answers::OutcomeExplanation;
pub use self::answers::SignInExplanation;
pub use self::descriptor::DescriptorExplanation;
pub use self::descriptor::explain_descriptor;
pub use self::explanation::AccessExplanation;
pub use self::explanation::Asker;
pub use self::explanation::Explanation;
pub use self::explanation::LimitExplanation;
pub use self::explanation::LimitOutcome;
pub use self::explanation::ListExplanation;
pub use self::explanation::RouteExplanation;
pub use self::explanation::RouteMatch;
pub use self::limit::algorithm_name;
pub use self::part::EmptyValue;
pub use self::part::KeyPartExplanation;
pub use self::request::explain;
pub use self::tokens::ExplainedTokens;
pub use self::tokens::TokenExplanation;
