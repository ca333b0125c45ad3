//! Typed access to a TOML table that reports what is wrong with it.
//!
//! What you may rely on: a table is opened with the list of its keys, so unknown and missing keys are reported in one
//! place; each getter gives `None` for an absent key and for a wrong value, and reports the latter.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::quantity::{Dimension, Fault};
use crate::report::{Findings, Scope, Span};

/// Longest distance of a suggestion: a third of the word, at least this.
const SUGGESTION_DISTANCE_MIN: usize = 2;

/// Longest text of the file that is repeated in a message, and longest word that is compared with others, in characters.
const QUOTED_CHARS_MAX: usize = 64;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

/// A key of a table.
pub(crate) struct Key {
    name: &'static str,
    /// How a required key is written, for the message about its absence.
    required: Option<&'static str>,
}

/// A key that may be left out.
pub(crate) const fn optional(name: &'static str) -> Key {
    Key { name, required: None }
}

/// A key that must be there; `example` is a line that has it.
pub(crate) const fn required(name: &'static str, example: &'static str) -> Key {
    Key { name, required: Some(example) }
}

/// One table of the description.
pub(crate) struct Reader<'t> {
    table: &'t DeTable<'t>,
    /// Where the table begins, for messages about what it lacks.
    pub(crate) span: Span,
}

impl<'t> Reader<'t> {
    /// Opens a table and reports unknown and missing keys. `title` names it in messages, with its article.
    pub(crate) fn open(
        table: &'t DeTable<'t>,
        span: Span,
        title: &str,
        keys: &[Key],
        findings: &mut Findings,
    ) -> Reader<'t> {
        for key in table.keys() {
            // Finding what was probably meant takes long enough to leave it, once nobody would read it.
            if !findings.is_full() && !keys.iter().any(|known| known.name == key.get_ref()) {
                unknown_key(key, title, keys, findings);
            }
        }
        for key in keys {
            if let (Some(example), false) = (key.required, has(table, key.name)) {
                let message = format!("{title} needs the key `{}`", key.name);
                findings
                    .add(Scope::Relation, span.clone(), message, format!("`{}` is missing", key.name))
                    .help(format!("add a line such as: {example}"));
            }
        }
        Reader { table, span }
    }

    pub(crate) fn value(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    /// A text.
    pub(crate) fn text(&self, key: &str, findings: &mut Findings) -> Option<Located<String>> {
        let value = self.value(key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            wrong_type(value, &format!("`{key}` is a text in quotes"), findings);
        }
        Some(Located { value: text?.to_owned(), span: value.span() })
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
        findings: &mut Findings,
    ) -> Option<Located<T>> {
        let text = self.text(key, findings)?;
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text.value) {
            return Some(Located { value: *value, span: text.span });
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let message = format!("`{key}` cannot be {}", quoted(&text.value));
        let problem = findings.add(Scope::Value, text.span, message, format!("expected {}", list(&words, '"', "or")));
        if let Some(word) = suggestion(&text.value, &words) {
            problem.help(format!("did you mean \"{word}\"?"));
        }
        None
    }

    /// True or false.
    pub(crate) fn truth(&self, key: &str, findings: &mut Findings) -> Option<Located<bool>> {
        let value = self.value(key)?;
        let truth = value.get_ref().as_bool();
        if truth.is_none() {
            wrong_type(value, &format!("`{key}` is true or false"), findings);
        }
        Some(Located { value: truth?, span: value.span() })
    }

    /// A plain integer within limits.
    pub(crate) fn integer(
        &self,
        key: &str,
        limits: RangeInclusive<u64>,
        findings: &mut Findings,
    ) -> Option<Located<u64>> {
        let value = self.value(key)?;
        integer(value, &format!("`{key}`"), limits, findings)
    }

    /// A quantity within limits, given in the dimension's smallest unit.
    pub(crate) fn quantity(
        &self,
        key: &str,
        dimension: &Dimension,
        limits: RangeInclusive<u64>,
        findings: &mut Findings,
    ) -> Option<Located<u64>> {
        let value = self.value(key)?;
        let Some(text) = value.get_ref().as_str() else {
            quantity_without_unit(key, value, dimension, findings);
            return None;
        };
        match dimension.read(text) {
            Ok(number) if limits.contains(&number) => Some(Located { value: number, span: value.span() }),
            Ok(number) => {
                let (low, high) = (dimension.write(*limits.start()), dimension.write(*limits.end()));
                let message = format!("`{key}` is out of range: {}", dimension.write(number));
                findings.add(Scope::Value, value.span(), message, format!("expected {low} to {high}"));
                None
            }
            Err(fault) => {
                not_a_quantity(key, value.span(), text, dimension, &fault, findings);
                None
            }
        }
    }

    /// A list.
    pub(crate) fn list(&self, key: &str, example: &str, findings: &mut Findings) -> Option<&'t [Spanned<DeValue<'t>>]> {
        let value = self.value(key)?;
        let array = value.get_ref().as_array();
        if array.is_none() {
            wrong_type(value, &format!("`{key}` is a list such as {example}"), findings);
        }
        array.map(|array| array.get(..).unwrap_or_default())
    }

    /// An inline table or a table of its own.
    pub(crate) fn table(
        &self,
        key: &str,
        title: &str,
        keys: &[Key],
        example: &str,
        findings: &mut Findings,
    ) -> Option<Reader<'t>> {
        let value = self.value(key)?;
        let table = value.get_ref().as_table();
        if table.is_none() {
            wrong_type(value, &format!("`{key}` is a table such as {example}"), findings);
        }
        Some(Reader::open(table?, value.span(), title, keys, findings))
    }
}

/// The tables of an array such as `[[domain]]`, which messages call `name`.
pub(crate) fn tables<'t>(
    holder: &Reader<'t>,
    key: &str,
    name: &str,
    title: &str,
    keys: &[Key],
    findings: &mut Findings,
) -> Vec<Reader<'t>> {
    let Some(value) = holder.value(key) else { return Vec::new() };
    let Some(array) = value.get_ref().as_array() else {
        wrong_type(value, &format!("`{key}` is a list of tables; begin each with [[{name}]]"), findings);
        return Vec::new();
    };
    let mut readers = Vec::new();
    for element in array.iter() {
        match element.get_ref().as_table() {
            Some(table) => readers.push(Reader::open(table, element.span(), title, keys, findings)),
            None => wrong_type(element, &format!("`{key}` is a list of tables"), findings),
        }
    }
    readers
}

/// The value, or what it is if left out.
pub(crate) fn value_or<T: Copy>(located: &Option<Located<T>>, default: T) -> T {
    located.as_ref().map_or(default, |located| located.value)
}

/// Where it stands.
pub(crate) fn span_of<T>(located: &Option<Located<T>>) -> Option<Span> {
    located.as_ref().map(|located| located.span.clone())
}

fn has(table: &DeTable<'_>, key: &str) -> bool {
    table.keys().any(|name| name.get_ref() == key)
}

fn unknown_key(key: &Spanned<toml::de::DeString<'_>>, title: &str, keys: &[Key], findings: &mut Findings) {
    let names: Vec<&str> = keys.iter().map(|known| known.name).collect();
    let message = format!("unknown key {} in {title}", quoted(key.get_ref()));
    let help = match suggestion(key.get_ref(), &names) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("the keys are {}", list(&names, '`', "and")),
    };
    findings.add(Scope::Relation, key.span(), message, "not a key of the description").help(help);
}

/// Reports a value of the wrong type.
pub(crate) fn wrong_type(value: &Spanned<DeValue<'_>>, expected: &str, findings: &mut Findings) {
    let message = format!("{expected}, not {}", type_name(value.get_ref()));
    findings.add(Scope::Value, value.span(), message, format!("this is {}", type_name(value.get_ref())));
}

/// A plain integer within limits; `what` names it in messages.
pub(crate) fn integer(
    value: &Spanned<DeValue<'_>>,
    what: &str,
    limits: RangeInclusive<u64>,
    findings: &mut Findings,
) -> Option<Located<u64>> {
    let Some(number) = value.get_ref().as_integer() else {
        wrong_type(value, &format!("{what} is a plain integer"), findings);
        return None;
    };
    // Wider than any limit, so that negative numbers and those past 64 bits are named as what they are.
    let parsed = i128::from_str_radix(number.as_str(), number.radix()).ok();
    match parsed.and_then(|number| u64::try_from(number).ok()).filter(|number| limits.contains(number)) {
        Some(number) => Some(Located { value: number, span: value.span() }),
        None => {
            let message = format!("{what} is out of range: {number}");
            let label = format!("expected {} to {}", limits.start(), limits.end());
            findings.add(Scope::Value, value.span(), message, label);
            None
        }
    }
}

fn quantity_without_unit(key: &str, value: &Spanned<DeValue<'_>>, dimension: &Dimension, findings: &mut Findings) {
    if value.get_ref().is_integer() || value.get_ref().is_float() {
        let message = format!("`{key}` is {} and needs a unit", dimension.what);
        findings
            .add(Scope::Value, value.span(), message, "a number without a unit")
            .help(format!("write it as a text with a unit, such as \"{}\"", dimension.example));
    } else {
        wrong_type(value, &format!("`{key}` is {} such as \"{}\"", dimension.what, dimension.example), findings);
    }
}

fn not_a_quantity(key: &str, span: Span, text: &str, dimension: &Dimension, fault: &Fault, findings: &mut Findings) {
    let units = dimension.unit_names();
    let label = match fault {
        Fault::NoNumber => "it must begin with a whole number".to_owned(),
        Fault::Fraction => "only whole numbers, without separators; choose a smaller unit".to_owned(),
        Fault::NoUnit => "the unit is missing".to_owned(),
        Fault::UnknownUnit(unit) => format!("{} is not a unit here", quoted(unit)),
        Fault::Overflow => "the number is too large".to_owned(),
    };
    let message = format!("`{key}` is not {}: {}", dimension.what, quoted(text));
    let mut help = format!("write it such as \"{}\"; units: {}", dimension.example, units.join(", "));
    if let Fault::UnknownUnit(unit) = fault
        && let Some(unit) = units.iter().find(|name| name.eq_ignore_ascii_case(unit))
    {
        help = format!("did you mean the unit {unit}? Units: {}", units.join(", "));
    }
    findings.add(Scope::Value, span, message, label).help(help);
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The candidate that was probably meant.
pub(crate) fn suggestion<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let length = word.chars().take(QUOTED_CHARS_MAX + 1).count();
    if length > QUOTED_CHARS_MAX {
        return None;
    }
    let limit = SUGGESTION_DISTANCE_MIN.max(length / 3);
    candidates
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Text of the file inside a message.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("`{}...`", text[..end].escape_debug()),
        None => format!("`{}`", text.escape_debug()),
    }
}

/// `a, b or c`, each between quotes.
pub(crate) fn list(words: &[&str], quote: char, conjunction: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{quote}{word}{quote}")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} {conjunction} {last}", others.join(", ")),
        None => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_near_and_no_further_than_a_third() {
        assert_eq!(suggestion("blokcs", &["block_size", "blocks"]), Some("blocks"), "two letters changed places");
        assert_eq!(suggestion("bl", &["blab"]), Some("blab"), "two are missing of a short word");
        assert_eq!(suggestion("b", &["blab"]), None, "three are");
        assert_eq!(suggestion("ab", &["cd", "xy"]), None, "nothing of a candidate is left");
        assert_eq!(suggestion("abx", &["ab"]), Some("ab"));
        let nine = "abcdefghi";
        assert_eq!(suggestion(nine, &["abcdefxyz"]), Some("abcdefxyz"), "three of nine");
        assert_eq!(suggestion(nine, &["abcdewxyz"]), None, "four of nine");
        assert_eq!(suggestion("", &["ab"]), None);
        assert_eq!(suggestion("ab", &["abc", "aba", "ab"]), Some("ab"), "the nearest");
    }

    #[test]
    fn words_that_are_too_long_are_not_compared() {
        let longest = "k".repeat(QUOTED_CHARS_MAX);
        assert_eq!(suggestion(&longest, &[&longest[1..]]), Some(&longest[1..]));
        let longer = "k".repeat(QUOTED_CHARS_MAX + 1);
        assert_eq!(suggestion(&longer, &[&longest]), None);
    }

    #[test]
    fn lists_are_written_as_they_are_said() {
        assert_eq!(list(&[], '`', "or"), "nothing");
        assert_eq!(list(&["a"], '`', "or"), "`a`");
        assert_eq!(list(&["a", "b"], '"', "and"), "\"a\" and \"b\"");
        assert_eq!(list(&["a", "b", "c"], '`', "or"), "`a`, `b` or `c`");
    }
}
