//! `[network]`: what holds for links between machines.
//!
//! How it works: as in [`crate::grammar`]; times are whole milliseconds, as everything about a link is.

use std::ops::RangeInclusive;

use musubi_transport::limits::PAYLOAD_BYTES_MAX;
use musubi_transport::topology::Network;

use crate::quantity::{SIZE, TIME};
use crate::reader::{Key, Located, Reader, optional, quoted};
use crate::report::{Findings, Scope, Span};

const MILLISECOND_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000 * MILLISECOND_NS;
const HEARTBEAT_NS: RangeInclusive<u64> = MILLISECOND_NS..=60 * SECOND_NS;
const SILENCE_NS: RangeInclusive<u64> = MILLISECOND_NS..=3600 * SECOND_NS;
const RESUME_NS: RangeInclusive<u64> = MILLISECOND_NS..=3600 * SECOND_NS;
const PIECE_BYTES: RangeInclusive<u64> = 512..=1 << 20;
/// A window holds the largest packet at least twice: one that is acknowledged while the next is sent.
const WINDOW_BYTES: RangeInclusive<u64> = 2 * PAYLOAD_BYTES_MAX as u64..=1 << 30;

const KEYS: &[Key] = &[
    optional("insecure"),
    optional("tls_on_loopback"),
    optional("keys"),
    optional("heartbeat"),
    optional("silence"),
    optional("resume"),
    optional("piece"),
    optional("window"),
    optional("priorities"),
];

/// What `[network]` says.
#[derive(Default)]
pub(crate) struct NetworkDraft {
    pub(crate) network: Network,
    /// Where `tls_on_loopback` stands.
    pub(crate) tls_on_loopback_at: Option<Span>,
}

/// Reads the table, which may be missing.
pub(crate) fn read(file: &Reader<'_>, findings: &mut Findings) -> NetworkDraft {
    let Some(reader) = file.table("network", "[network]", KEYS, "[network]", findings) else {
        return NetworkDraft::default();
    };
    let usual = Network::default();
    let insecure = reader.truth("insecure", findings);
    let tls_on_loopback = reader.truth("tls_on_loopback", findings);
    let heartbeat = milliseconds(&reader, "heartbeat", HEARTBEAT_NS, findings);
    let silence = milliseconds(&reader, "silence", SILENCE_NS, findings);
    let resume = milliseconds(&reader, "resume", RESUME_NS, findings);
    let piece = reader.quantity("piece", &SIZE, PIECE_BYTES, findings);
    let window = reader.quantity("window", &SIZE, WINDOW_BYTES, findings);
    let priorities = reader.truth("priorities", findings);
    let network = Network {
        insecure: insecure.is_some_and(|insecure| insecure.value),
        tls_on_loopback: tls_on_loopback.as_ref().is_some_and(|tls| tls.value),
        keys: path(&reader, "keys", findings).map(|path| path.value),
        heartbeat_ms: heartbeat.as_ref().map_or(usual.heartbeat_ms, |time| time.value),
        silence_ms: silence.as_ref().map_or(usual.silence_ms, |time| time.value),
        resume_ms: resume.map_or(usual.resume_ms, |time| time.value),
        piece_bytes: piece.map_or(usual.piece_bytes, |size| size.value as u32),
        window_bytes: window.map_or(usual.window_bytes, |size| size.value as u32),
        priorities: priorities.is_none_or(|priorities| priorities.value),
    };
    if let (true, Some(at)) = (network.silence_ms <= network.heartbeat_ms, silence.or(heartbeat)) {
        silence_without_heartbeat(&network, at.span, findings);
    }
    NetworkDraft { network, tls_on_loopback_at: tls_on_loopback.filter(|tls| tls.value).map(|tls| tls.span) }
}

fn silence_without_heartbeat(network: &Network, at: Span, findings: &mut Findings) {
    let (silence, heartbeat) = (written(network.silence_ms), written(network.heartbeat_ms));
    let message = format!("`silence` ({silence}) is not longer than `heartbeat` ({heartbeat})");
    findings
        .add(Scope::Relation, at, message, "every quiet connection would be cut between two heartbeats")
        .help("let `silence` be at least three times `heartbeat`");
}

/// A time of whole milliseconds.
fn milliseconds(
    reader: &Reader<'_>,
    key: &str,
    limits_ns: RangeInclusive<u64>,
    findings: &mut Findings,
) -> Option<Located<u32>> {
    let time = reader.quantity(key, &TIME, limits_ns, findings)?;
    if !time.value.is_multiple_of(MILLISECOND_NS) {
        let message = format!("`{key}` is not a whole number of milliseconds");
        findings.add(Scope::Value, time.span, message, format!("this is {}", TIME.write(time.value)));
        return None;
    }
    Some(Located { value: (time.value / MILLISECOND_NS) as u32, span: time.span })
}

/// Milliseconds as a description has them.
pub(crate) fn written(time_ms: u32) -> String {
    TIME.write(u64::from(time_ms) * MILLISECOND_NS)
}

/// The path of a file or directory.
pub(crate) fn path(reader: &Reader<'_>, key: &str, findings: &mut Findings) -> Option<Located<String>> {
    let path = reader.text(key, findings)?;
    if path.value.is_empty() || path.value.contains(char::is_control) {
        let message = format!("`{key}` cannot be the path {}", quoted(&path.value));
        findings.add(Scope::Value, path.span, message, "empty, or with control characters in it");
        return None;
    }
    Some(path)
}
