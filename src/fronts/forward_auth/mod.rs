//! Forward auth: a proxy describes a request in the head of its question, and forwards the request itself if the answer is a
//! success (nginx `auth_request`, Caddy `forward_auth`, Traefik `forwardAuth`).

mod answer;
mod asked;
mod bad_question;
mod description;
mod endpoint;
mod question;

pub use self::asked::asked;
pub use self::description::BadDescription;
pub(super) use self::question::answer_question;
