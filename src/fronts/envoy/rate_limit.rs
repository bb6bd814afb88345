//! `RateLimitService/ShouldRateLimit`: Envoy's filter `ratelimit` asks about descriptors.

use envoy_types::pb::envoy::config::core::v3::HeaderValue;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus, RateLimit};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::RateLimitService;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf;
use tonic::{Request, Response, Status};

use super::description::{BadDescription, Description};
use crate::fronts::envoy::service::CallContext;
use crate::gateway::decide::descriptors::DescriptorAnswer;
use crate::rules::decision::descriptors;
use crate::rules::decision::descriptors::{CurrentLimit, DescriptorCall, PricedDescriptor};
use crate::rules::key::{Descriptor, DescriptorEntry};
use crate::wire::head::Field;

#[tonic::async_trait]
impl RateLimitService for CallContext {
    async fn should_rate_limit(&self, call: Request<RateLimitRequest>) -> Result<Response<RateLimitResponse>, Status> {
        let request = call.into_inner();
        if request.descriptors.iter().any(|descriptor| descriptor.is_negative_hits) {
            let bad = self.undescribed(&Description::of_domain(request.domain), BadDescription::NegativeHits);
            return Err(self.bad_description(bad));
        }
        let decided = self.gateway.decide_descriptors(&self.connection, &described(request)).await;
        let DescriptorAnswer { is_over, statuses, fields } = decided.map_err(|invalid| self.invalid_call(&invalid))?;
        Ok(Response::new(RateLimitResponse {
            overall_code: code(is_over),
            statuses: statuses.iter().map(status).collect(),
            response_headers_to_add: fields.iter().map(header).collect(),
            ..RateLimitResponse::default()
        }))
    }
}

fn described(request: RateLimitRequest) -> DescriptorCall {
    DescriptorCall {
        domain: request.domain,
        descriptors: request.descriptors.into_iter().map(priced).collect(),
        hits: request.hits_addend,
    }
}

fn priced(descriptor: RateLimitDescriptor) -> PricedDescriptor {
    let entry = |Entry { key, value }| DescriptorEntry { name: key, value };
    PricedDescriptor {
        descriptor: Descriptor { entries: descriptor.entries.into_iter().map(entry).collect() },
        hits: descriptor.hits_addend.map(|hits| hits.value),
    }
}

fn status(status: &descriptors::DescriptorStatus) -> DescriptorStatus {
    DescriptorStatus {
        code: code(status.is_over),
        current_limit: status.current_limit.as_ref().map(current_limit),
        limit_remaining: u32::try_from(status.remaining).unwrap_or(u32::MAX),
        duration_until_reset: status.reset.map(|reset| protobuf::Duration {
            seconds: i64::try_from(reset.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(reset.subsec_nanos()).unwrap_or_default(),
        }),
        ..DescriptorStatus::default()
    }
}

/// A rate over several units has none that Envoy knows.
fn current_limit(limit: &CurrentLimit) -> RateLimit {
    let unit = match limit.rate.per.as_secs() {
        1 => Unit::Second,
        60 => Unit::Minute,
        3600 => Unit::Hour,
        86_400 => Unit::Day,
        604_800 => Unit::Week,
        MONTH => Unit::Month,
        YEAR => Unit::Year,
        _ => Unit::Unknown,
    };
    RateLimit { requests_per_unit: limit.rate.count.get(), unit: unit.into(), name: limit.name.to_string() }
}

fn code(is_over: bool) -> i32 {
    if is_over { Code::OverLimit.into() } else { Code::Ok.into() }
}

fn header(field: Field<'_>) -> HeaderValue {
    HeaderValue {
        key: field.name.as_str().to_owned(),
        value: String::from_utf8_lossy(field.value).into_owned(),
        raw_value: Vec::new(),
    }
}

/// In seconds, as rates in configurations have them.
const MONTH: u64 = 30 * 86_400;

const YEAR: u64 = 365 * 86_400;
