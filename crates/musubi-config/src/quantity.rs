//! Sizes, times and rates: an integer and a unit, computed exactly.
//!
//! What you may rely on: no floating point, no rounding, no silent overflow. [`Dimension::write`] gives a text that
//! [`Dimension::read`] turns into the same value.

/// What a quantity measures, with the units that may be written.
pub(crate) struct Dimension {
    /// With its article, for messages.
    pub(crate) what: &'static str,
    /// How it is written, for messages.
    pub(crate) example: &'static str,
    /// Unit and its value in the smallest one; the ones preferred for writing first, descending.
    units: &'static [(&'static str, u64)],
}

/// Sizes in bytes.
pub(crate) const SIZE: Dimension = Dimension {
    what: "a size",
    example: "64 KiB",
    units: &[
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KB", 1_000),
        ("B", 1),
    ],
};

/// Times in nanoseconds.
pub(crate) const TIME: Dimension = Dimension {
    what: "a time",
    example: "100 us",
    units: &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)],
};

/// Rates in messages a second.
pub(crate) const MESSAGE_RATE: Dimension =
    Dimension { what: "a rate of messages", example: "1000 /s", units: &[("/s", 1)] };

/// Rates in bytes a second.
pub(crate) const BYTE_RATE: Dimension = Dimension {
    what: "a rate of bytes",
    example: "10 MiB/s",
    units: &[
        ("GiB/s", 1 << 30),
        ("MiB/s", 1 << 20),
        ("KiB/s", 1 << 10),
        ("GB/s", 1_000_000_000),
        ("MB/s", 1_000_000),
        ("KB/s", 1_000),
        ("B/s", 1),
    ],
};

/// Why a text is not a quantity.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not begin with an integer.
    NoNumber,
    /// There is a fraction.
    Fraction,
    /// The unit is missing.
    NoUnit,
    /// The unit is none of this dimension.
    UnknownUnit(String),
    /// The value does not fit 64 bits.
    Overflow,
}

impl Dimension {
    /// The value in the smallest unit.
    pub(crate) fn read(&self, text: &str) -> Result<u64, Fault> {
        let text = text.trim();
        let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, rest) = text.split_at(digits_end);
        if digits.is_empty() {
            return Err(Fault::NoNumber);
        }
        if rest.starts_with(['.', ',', '_']) {
            return Err(Fault::Fraction);
        }
        let unit = rest.trim_start();
        if unit.is_empty() {
            return Err(Fault::NoUnit);
        }
        let known = self.units.iter().find(|(name, _)| *name == unit);
        let (_, scale) = known.ok_or_else(|| Fault::UnknownUnit(unit.to_owned()))?;
        digits.parse::<u64>().ok().and_then(|number| number.checked_mul(*scale)).ok_or(Fault::Overflow)
    }

    /// The value in the largest unit that divides it.
    pub(crate) fn write(&self, value: u64) -> String {
        let fitting = self.units.iter().find(|(_, scale)| value >= *scale && value.is_multiple_of(*scale));
        match fitting.or(self.units.last()) {
            Some((unit, scale)) => format!("{} {unit}", value / scale),
            None => value.to_string(),
        }
    }

    /// The units' names.
    pub(crate) fn unit_names(&self) -> Vec<&'static str> {
        self.units.iter().rev().map(|(name, _)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact_and_units_are_required() {
        assert_eq!(SIZE.read("64 KiB"), Ok(65_536));
        assert_eq!(SIZE.read("64KB"), Ok(64_000));
        assert_eq!(TIME.read(" 7 us "), Ok(7_000));
        assert_eq!(BYTE_RATE.read("10 MiB/s"), Ok(10 << 20));
        assert_eq!(MESSAGE_RATE.read("1000/s"), Ok(1000));
        assert_eq!(SIZE.read("64"), Err(Fault::NoUnit));
        assert_eq!(SIZE.read("1.5 KiB"), Err(Fault::Fraction));
        assert_eq!(SIZE.read("KiB"), Err(Fault::NoNumber));
        assert_eq!(SIZE.read("-1 B"), Err(Fault::NoNumber));
        assert_eq!(TIME.read("5 min"), Err(Fault::UnknownUnit("min".to_owned())));
        assert_eq!(SIZE.read("18446744073709551615 B"), Ok(u64::MAX));
        assert_eq!(SIZE.read("18446744073709551616 B"), Err(Fault::Overflow));
        assert_eq!(SIZE.read("17179869184 GiB"), Err(Fault::Overflow));
    }

    #[test]
    fn what_is_written_reads_back() {
        for value in [0, 1, 1000, 1024, 3 << 20, 5_000_000, (1 << 30) + 1, u64::MAX] {
            assert_eq!(SIZE.read(&SIZE.write(value)), Ok(value));
            assert_eq!(TIME.read(&TIME.write(value)), Ok(value));
        }
        assert_eq!(SIZE.write(1000), "1 KB");
        assert_eq!(TIME.write(1_500_000), "1500 us");
    }
}
