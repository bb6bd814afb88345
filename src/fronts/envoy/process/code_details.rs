//! Who made an answer: the application, or Envoy itself.

use crate::gateway::Unanswered;

/// Reads `response.code_details`. `None`: the application answered.
pub(super) fn unanswered(details: &str) -> Option<Unanswered> {
    if details == VIA_UPSTREAM {
        return None;
    }
    let is_not_sent = NOT_SENT.iter().any(|known| details.starts_with(known))
        || NOT_CONNECTED.iter().any(|known| details.contains(known));
    Some(if is_not_sent { Unanswered::NotSent } else { Unanswered::MaybeSent })
}

const VIA_UPSTREAM: &str = "via_upstream";

/// Envoy found no server for the request.
const NOT_SENT: [&str; 6] = [
    "no_healthy_upstream",
    "cluster_not_found",
    "route_not_found",
    "direct_response",
    "maintenance_mode",
    "upstream_reset_before_response_started{overflow",
];

/// No connection to a server came about.
const NOT_CONNECTED: [&str; 3] = ["{remote_connection_failure", "{local_connection_failure", "{connection_timeout"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(details: &str, expected: Option<Unanswered>) {
        assert_eq!(unanswered(details), expected, "{details}");
    }

    #[test]
    fn an_answer_is_the_applications_only_where_envoy_says_so() {
        check("via_upstream", None);
        check("no_healthy_upstream", Some(Unanswered::NotSent));
        let refused = "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_111}";
        check(refused, Some(Unanswered::NotSent));
        check("upstream_reset_before_response_started{connection_termination}", Some(Unanswered::MaybeSent));
        check("upstream_response_timeout", Some(Unanswered::MaybeSent));
        check("something_new", Some(Unanswered::MaybeSent));
    }
}
