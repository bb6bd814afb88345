//! The configuration as operators are shown it: what was read, after the environment's values were put in place, and
//! without secrets.

mod mask;
mod text;
mod yaml;

pub use self::text::ShownConfig;
