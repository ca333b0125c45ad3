//! How programs and the provider's own threads wait.

pub(crate) mod bell;
pub(crate) mod watching;
