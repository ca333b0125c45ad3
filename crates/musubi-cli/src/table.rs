//! What the tables for people share.

/// What stands where there is nothing.
pub const NONE: &str = "-";

/// The text, or what stands where there is nothing.
pub fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}
