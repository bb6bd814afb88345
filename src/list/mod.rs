//! Named lists that rules refer to: of addresses, or of the values of another selector.

pub mod addresses;
pub mod definition;
pub mod lines;
pub mod membership;
pub mod values;

pub use self::addresses::AddressSet;
pub use self::addresses::InvalidNetwork;
pub use self::addresses::network;
pub use self::definition::List;
pub use self::definition::ListId;
pub use self::definition::Members;
pub use self::membership::Membership;
pub use self::values::ValueSet;
