//! Decides what a proxy asks about descriptors instead of requests, as Envoy's rate limit filter does.
//!
//! All descriptors of one call are decided together. [`DescriptorCall::meet`] finds the limits of the domain that they meet,
//! [`MetLimits::plan`] makes one [`Batch`](super::Batch) of them, and [`DescriptorPlan::conclude`] turns the verdicts of the
//! store into a [`Decision`](super::Decision) and a status of each descriptor.

mod call;
mod meet;
mod plan;
mod status;

pub use self::call::DescriptorCall;
pub use self::call::InvalidCall;
pub use self::call::MAX_COUNTED_KEYS;
pub use self::call::MAX_DESCRIPTORS;
pub use self::call::MAX_ENTRIES;
pub use self::call::PricedDescriptor;
pub use self::meet::MetLimits;
pub use self::plan::DescriptorPlan;
pub use self::status::CurrentLimit;
pub use self::status::DescriptorStatus;
