//! Messages as text, as JSON, or as they are.

use std::fmt::Write as _;
use std::io::{BufWriter, ErrorKind, Stdout, Write};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anstyle::{AnsiColor, Style};
use musubi_core::fifo::Tapped;
use musubi_core::plan::Plan;
use serde::Serialize;

use crate::output;

const HEADING: Style = Style::new().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Bytes of a line, as `hexdump -C` shows them.
const LINE_BYTES: usize = 16;

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For a person.
    Text,
    /// An object a line.
    Json,
    /// Their bytes.
    Raw,
}

/// A message that was seen.
pub struct Shown<'a> {
    /// Participant and epoch.
    pub sender: (u16, u32),
    pub message: Tapped,
    /// Its first bytes, or all.
    pub payload: &'a [u8],
    /// Messages that have passed unseen by now.
    pub unseen: u64,
}

/// Writes messages to standard output.
pub struct Writer {
    plan: &'static Plan<'static>,
    form: Form,
    begin: Instant,
    unseen: u64,
    output: BufWriter<anstream::AutoStream<Stdout>>,
}

/// docs/tap.md explains the fields.
#[derive(Serialize)]
struct JsonLine<'a> {
    domain: &'a str,
    slot: u16,
    epoch: u32,
    position: u32,
    seen_unix_ns: u64,
    bytes: u32,
    hex: String,
    text: String,
    unseen: u64,
}

impl Writer {
    pub fn new(plan: &'static Plan<'static>, form: Form) -> Writer {
        let output = match form {
            Form::Text => anstream::AutoStream::auto(std::io::stdout()),
            // Bytes that look like colours must stay.
            Form::Json | Form::Raw => anstream::AutoStream::always_ansi(std::io::stdout()),
        };
        Writer { plan, form, begin: Instant::now(), unseen: 0, output: BufWriter::new(output) }
    }

    /// Writes a message; false if nobody reads any more.
    pub fn write(&mut self, shown: &Shown<'_>) -> anyhow::Result<bool> {
        let missed = shown.unseen - std::mem::replace(&mut self.unseen, shown.unseen);
        let done = match self.form {
            Form::Raw => self.output.write_all(shown.payload),
            Form::Json => {
                let line = serde_json::to_string(&self.record(shown))? + "\n";
                self.output.write_all(line.as_bytes())
            }
            Form::Text => {
                let text = said_missed(missed) + &self.text(shown);
                self.output.write_all(text.as_bytes())
            }
        };
        is_read(done)
    }

    /// Lets the reader have what was written; false if there is none any more.
    pub fn flush(&mut self) -> anyhow::Result<bool> {
        is_read(self.output.flush())
    }

    /// Says what was shown and what was not.
    pub fn finish(&mut self, shown: u64, unseen: u64) -> anyhow::Result<()> {
        self.flush()?;
        output::note(&format!("{shown} shown, {unseen} passed unseen"));
        Ok(())
    }

    /// Name of the domain of a participant, and its slot in it.
    fn place(&self, participant: u16) -> (&'static str, u16) {
        let domain = self.plan.domain_of(participant).unwrap_or_default();
        (self.plan.domains[usize::from(domain)].name, participant - self.plan.first_participant(domain))
    }

    fn text(&self, shown: &Shown<'_>) -> String {
        let (domain, slot) = self.place(shown.sender.0);
        let (message, s) = (&shown.message, self.begin.elapsed().as_secs_f64());
        let Tapped { position, bytes, .. } = message;
        let mut text = format!("{HEADING}#{position}  {bytes} bytes  {domain}.{slot}  {s:.6} s{HEADING:#}\n");
        text.push_str(&hexdump(shown.payload));
        let left = *bytes as usize - shown.payload.len();
        if left > 0 {
            let _ = writeln!(text, "{left} more bytes");
        }
        text
    }

    fn record(&self, shown: &Shown<'_>) -> JsonLine<'static> {
        let (domain, slot) = self.place(shown.sender.0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        JsonLine {
            domain,
            slot,
            epoch: shown.sender.1,
            position: shown.message.position,
            seen_unix_ns: now.as_nanos() as u64,
            bytes: shown.message.bytes,
            hex: shown.payload.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            }),
            text: String::from_utf8_lossy(shown.payload).into_owned(),
            unseen: shown.unseen,
        }
    }
}

fn said_missed(missed: u64) -> String {
    if missed == 0 { String::new() } else { format!("{WARNING}{missed} passed unseen{WARNING:#}\n") }
}

fn is_read(done: std::io::Result<()>) -> anyhow::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Bytes as `hexdump -C` shows them, equal lines too.
fn hexdump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (index, line) in bytes.chunks(LINE_BYTES).enumerate() {
        let _ = write!(text, "{:08x} ", index * LINE_BYTES);
        for at in 0..LINE_BYTES {
            let gap = if at.is_multiple_of(LINE_BYTES / 2) { " " } else { "" };
            match line.get(at) {
                Some(byte) => {
                    let _ = write!(text, "{gap}{byte:02x} ");
                }
                None => {
                    let _ = write!(text, "{gap}   ");
                }
            }
        }
        let shown = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
        let _ = writeln!(text, " |{}|", line.iter().map(shown).collect::<String>());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_look_as_in_hexdump() {
        let bytes: Vec<u8> = b"Hello, world.\n".iter().copied().chain(0..10).collect();
        let expected = "\
00000000  48 65 6c 6c 6f 2c 20 77  6f 72 6c 64 2e 0a 00 01  |Hello, world....|
00000010  02 03 04 05 06 07 08 09                           |........|
";
        assert_eq!(hexdump(&bytes), expected);
        assert_eq!(hexdump(&[]), "");
        assert!(hexdump(&bytes).lines().all(|line| line.len() <= 80));
    }
}
