//! What the tables for people share.

/// What stands where there is nothing.
pub const NONE: &str = "-";

/// The text, or what stands where there is nothing.
pub fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

/// A number with a comma every three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        assert_eq!(["7", "999", "1,000", "1,234,567"].map(str::to_owned), [7, 999, 1000, 1_234_567].map(grouped));
    }
}
