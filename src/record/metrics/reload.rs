//! The `result` of a reload.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReloadResult {
    Success,
    Failure,
}

impl ReloadResult {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}
