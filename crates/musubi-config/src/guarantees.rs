//! Filters and regulations, as channels and nodes have them.
//!
//! How it works: as in [`crate::grammar`].

use std::ops::RangeInclusive;

use musubi_core::plan::{BLOCKS_MAX, FilterRule, Regulation};

use crate::quantity::{BYTE_RATE, MESSAGE_RATE, SIZE, TIME};
use crate::reader::{Key, Located, Reader, optional, span_of, value_or};
use crate::report::{Findings, Scope, Span};

const SECOND_NS: u64 = 1_000_000_000;
const FILTER_NS: RangeInclusive<u64> = 1..=3600 * SECOND_NS;
/// Fraction of a second whose tokens a burst holds unless the description says otherwise.
const BURST_FRACTION: u64 = 100;

/// The keys of a filter.
pub(crate) const FILTER_KEYS: &[Key] =
    &[optional("every"), optional("level"), optional("interval"), optional("latest")];
const REGULATION_KEYS: &[Key] =
    &[optional("messages"), optional("messages_burst"), optional("bytes"), optional("bytes_burst")];

/// The filter of what `holder` describes, and where its level stands. `keys` are those that make sense there.
pub(crate) fn filter(holder: &Reader<'_>, keys: &[Key], findings: &mut Findings) -> (FilterRule, Option<Span>) {
    let example = "{ every = 2, latest = \"10 ms\" }";
    let Some(reader) = holder.table("filter", "a filter", keys, example, findings) else {
        return (FilterRule::EACH, None);
    };
    let level = reader.integer("level", 0..=u64::from(BLOCKS_MAX), findings);
    let interval = reader.quantity("interval", &TIME, FILTER_NS, findings);
    let latest = reader.quantity("latest", &TIME, FILTER_NS, findings);
    let each = FilterRule::EACH;
    let rule = FilterRule {
        every: value_or(&reader.integer("every", 1..=u64::from(u32::MAX), findings), 1) as u32,
        level: value_or(&level, u64::from(each.level)) as u32,
        interval_ns_min: value_or(&interval, each.interval_ns_min),
        latest_ns: value_or(&latest, each.latest_ns),
    };
    if let (true, Some(at)) = (rule.latest_ns < rule.interval_ns_min, span_of(&latest).or(span_of(&interval))) {
        let (latest, interval) = (TIME.write(rule.latest_ns), TIME.write(rule.interval_ns_min));
        findings
            .add(
                Scope::Relation,
                at,
                format!("`latest` ({latest}) is shorter than `interval` ({interval})"),
                "a notification would have to come and to stay away at once",
            )
            .help(format!("write `latest` as {interval} or longer; without it, it is {}", TIME.write(each.latest_ns)));
    }
    (rule, span_of(&level))
}

/// The regulation of what `holder` describes. A burst holds at least `largest_bytes`.
pub(crate) fn regulation(holder: &Reader<'_>, largest_bytes: u64, findings: &mut Findings) -> Regulation {
    bounds(holder, ("regulation", "a regulation"), largest_bytes, findings)
}

/// What a NIC takes of a class.
pub(crate) fn intake(holder: &Reader<'_>, findings: &mut Findings) -> Regulation {
    bounds(holder, ("intake", "an intake"), 1, findings)
}

fn bounds(
    holder: &Reader<'_>,
    (key, kind): (&'static str, &str),
    largest_bytes: u64,
    findings: &mut Findings,
) -> Regulation {
    let example = "{ messages = \"1000 /s\" }";
    let Some(reader) = holder.table(key, kind, REGULATION_KEYS, example, findings) else {
        return Regulation::NONE;
    };
    let messages = reader.quantity("messages", &MESSAGE_RATE, 1..=u64::from(u32::MAX), findings);
    let messages_burst = reader.integer("messages_burst", 1..=u64::from(u32::MAX), findings);
    let bytes = reader.quantity("bytes", &BYTE_RATE, 1..=1 << 40, findings);
    let bytes_burst = reader.quantity("bytes_burst", &SIZE, 1..=1 << 40, findings);
    for (burst, rate) in [("messages_burst", "messages"), ("bytes_burst", "bytes")] {
        if let (Some(value), None) = (reader.value(burst), reader.value(rate)) {
            let message = format!("`{burst}` without `{rate}`: a burst needs a rate");
            findings.add(Scope::Relation, value.span(), message, format!("`{rate}` is missing"));
        }
    }
    burst_holds_a_block(&bytes_burst, largest_bytes, findings);
    let (messages, bytes) = (value_or(&messages, 0), value_or(&bytes, 0));
    Regulation {
        messages_per_s: messages as u32,
        messages_burst: value_or(&messages_burst, (messages / BURST_FRACTION).max(messages.min(1))) as u32,
        bytes_per_s: bytes,
        bytes_burst: value_or(&bytes_burst, if bytes == 0 { 0 } else { (bytes / BURST_FRACTION).max(largest_bytes) }),
    }
}

fn burst_holds_a_block(burst: &Option<Located<u64>>, block_bytes: u64, findings: &mut Findings) {
    if let Some(burst) = burst
        && burst.value < block_bytes
    {
        let message = format!("`bytes_burst` ({}) is smaller than a block", SIZE.write(burst.value));
        let label = format!("a full block of {} could never be sent", SIZE.write(block_bytes));
        findings.add(Scope::Relation, burst.span.clone(), message, label);
    }
}
