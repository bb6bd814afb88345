//! What the claims of a token must say for it to be valid here and now.

use std::time::Duration;

use serde_json::Map;
use serde_json::Value;

use super::Unverified;
use crate::clock::Timestamp;

/// What is expected of every token.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Validity {
    /// `iss` must be one of these. Empty: any, or none.
    pub issuers: Vec<String>,
    /// `aud` must name one of these. Empty: any, or none.
    pub audiences: Vec<String>,
    /// By how much the clock of the issuer may differ from ours.
    pub leeway: Duration,
}

impl Validity {
    /// When a token with these claims ends; `None`: never. `now` is by the wall clock.
    pub(super) fn check(&self, claims: &Map<String, Value>, now: Timestamp) -> Result<Option<Timestamp>, Unverified> {
        let ends = moment(claims, "exp")?.map(|expiry| expiry + self.leeway);
        if ends.is_some_and(|ends| now >= ends) {
            return Err(Unverified::Expired);
        }
        if moment(claims, "nbf")?.is_some_and(|begins| now + self.leeway < begins) {
            return Err(Unverified::NotYetValid);
        }
        let names_one_of = |name: &str, expected: &[String]| {
            let is_expected =
                |value: &Value| value.as_str().is_some_and(|value| expected.iter().any(|one| one == value));
            match claims.get(name) {
                _ if expected.is_empty() => true,
                // Only an audience may be several.
                Some(Value::Array(several)) if name == "aud" => several.iter().any(is_expected),
                Some(value) => is_expected(value),
                None => false,
            }
        };
        if !names_one_of("iss", &self.issuers) {
            return Err(Unverified::Issuer);
        }
        if !names_one_of("aud", &self.audiences) {
            return Err(Unverified::Audience);
        }
        Ok(ends)
    }
}

/// A claim that is a number of seconds since the epoch, perhaps with a fraction.
fn moment(claims: &Map<String, Value>, name: &str) -> Result<Option<Timestamp>, Unverified> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|_| value.is_number());
    let seconds = seconds.ok_or(Unverified::NotUnderstood("its `exp` or `nbf` is no number"))?;
    // Before the epoch is long ago, and beyond what a duration holds is never.
    let since_epoch = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    Ok(Some(Timestamp::EPOCH + since_epoch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_700_000_000;

    #[track_caller]
    fn check(validity: &Validity, claims: &Value, expected: Result<Option<u64>, &Unverified>) {
        let now = Timestamp::from_micros(NOW * 1_000_000);
        let found = validity.check(claims.as_object().unwrap(), now);
        let found = found.map(|ends| ends.map(|ends| ends.as_micros() / 1_000_000));
        assert_eq!(found.as_ref().map(|ends| *ends), expected, "{claims}");
    }

    fn leeway(seconds: u64) -> Validity {
        Validity { leeway: Duration::from_secs(seconds), ..Validity::default() }
    }

    #[test]
    fn a_token_ends_at_its_expiry_and_the_leeway() {
        check(&leeway(0), &json!({}), Ok(None));
        check(&leeway(0), &json!({ "exp": NOW + 1 }), Ok(Some(NOW + 1)));
        check(&leeway(0), &json!({ "exp": NOW }), Err(&Unverified::Expired));
        check(&leeway(30), &json!({ "exp": NOW - 29 }), Ok(Some(NOW + 1)));
        check(&leeway(30), &json!({ "exp": NOW - 30 }), Err(&Unverified::Expired));
        check(&leeway(0), &json!({ "exp": 1_700_000_000.5 }), Ok(Some(NOW)));
        check(&leeway(0), &json!({ "exp": -5 }), Err(&Unverified::Expired));
        check(&leeway(30), &json!({ "exp": 1e300 }), Ok(Some(u64::MAX / 1_000_000)));
    }

    #[test]
    fn a_token_begins_the_leeway_before_it_says() {
        check(&leeway(0), &json!({ "nbf": NOW }), Ok(None));
        check(&leeway(0), &json!({ "nbf": NOW + 1 }), Err(&Unverified::NotYetValid));
        check(&leeway(30), &json!({ "nbf": NOW + 30 }), Ok(None));
        check(&leeway(30), &json!({ "nbf": NOW + 31 }), Err(&Unverified::NotYetValid));
        check(&leeway(0), &json!({ "nbf": -1 }), Ok(None));
    }

    #[test]
    fn a_time_that_is_no_number_is_not_understood() {
        for claims in
            [json!({ "exp": "4000000000" }), json!({ "exp": null }), json!({ "nbf": true }), json!({ "nbf": [1] })]
        {
            let found = leeway(0).check(claims.as_object().unwrap(), Timestamp::EPOCH);
            assert!(found.unwrap_err().may_hide_claims(), "{claims}");
        }
    }

    #[test]
    fn issuer_and_audience_are_kept_where_given() {
        let strict = Validity {
            issuers: vec!["https://a.example".to_owned(), "https://b.example".to_owned()],
            audiences: vec!["api".to_owned(), "web".to_owned()],
            leeway: Duration::ZERO,
        };
        check(&leeway(0), &json!({ "iss": "anyone", "aud": ["anything"] }), Ok(None));
        check(&strict, &json!({ "iss": "https://b.example", "aud": "web" }), Ok(None));
        check(&strict, &json!({ "iss": "https://a.example", "aud": ["other", "api"] }), Ok(None));
        for issuer in
            [json!(null), json!("https://a.example/"), json!("HTTPS://a.example"), json!(["https://a.example"])]
        {
            check(&strict, &json!({ "iss": issuer, "aud": "api" }), Err(&Unverified::Issuer));
        }
        check(&strict, &json!({ "aud": "api" }), Err(&Unverified::Issuer));
        for audience in
            [json!(null), json!("API"), json!([]), json!(["other"]), json!([["api"]]), json!({ "api": true })]
        {
            let claims = json!({ "iss": "https://a.example", "aud": audience });
            check(&strict, &claims, Err(&Unverified::Audience));
        }
        check(&strict, &json!({ "iss": "https://a.example" }), Err(&Unverified::Audience));
    }
}
