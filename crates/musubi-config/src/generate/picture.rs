//! The picture of the memory map: a row for each region, divided into its parts.
//!
//! How it works: plain SVG shapes without scripts or fonts of its own. Lengths differ by factors of thousands, so the
//! widths are logarithmic; numbers stand beside the rows and in the tooltips.

use musubi_core::layout::{self, Part};
use musubi_core::plan::Plan;
use svg::Document;
use svg::node::element::{Group, Rectangle, Text, Title};

use crate::quantity::SIZE;
use crate::{Content, Description, MemoryMap, Region};

const WIDTH: f64 = 1000.0;
const BAR_LEFT: f64 = 250.0;
const BAR_WIDTH: f64 = 640.0;
const ROW_HEIGHT: f64 = 46.0;
const BAR_HEIGHT: f64 = 34.0;
const ROWS_TOP: f64 = 104.0;
/// Width of a character of the labels, about; a label that does not fit is left to the tooltip.
const CHARACTER_WIDTH: f64 = 6.6;

/// What a part is for, with its colour; told apart also without colours, by order and label.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Header,
    Sender,
    Receiver,
    Ticket,
    Shared,
    Padding,
}

const LEGEND: [(Kind, &str); 6] = [
    (Kind::Header, "header"),
    (Kind::Sender, "sender's end"),
    (Kind::Receiver, "receiver's end"),
    (Kind::Ticket, "ticket line"),
    (Kind::Shared, "shared payload"),
    (Kind::Padding, "rest of the page"),
];

impl Kind {
    /// From the palette of Okabe and Ito, which colour-blind readers can tell apart.
    fn color(self) -> &'static str {
        match self {
            Kind::Header => "#999999",
            Kind::Sender => "#56b4e9",
            Kind::Receiver => "#8fd6b4",
            Kind::Ticket => "#f0e442",
            Kind::Shared => "#e69f00",
            Kind::Padding => "#ffffff",
        }
    }
}

/// A piece of a row.
struct Piece {
    kind: Kind,
    label: String,
    bytes: u64,
}

/// The picture as text.
pub(super) fn write(description: &Description, map: &MemoryMap) -> String {
    let height = ROWS_TOP + ROW_HEIGHT * map.regions().len() as f64 + 30.0;
    let sheet = Document::new()
        .set("viewBox", (0, 0, WIDTH, height))
        .set("width", WIDTH)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", 13)
        .add(Title::new(format!("Memory map of {}", description.name())))
        .add(rectangle(0.0, 0.0, WIDTH, height, "#ffffff").set("stroke", "none"))
        .add(label(20.0, 32.0, &format!("Memory map of {}", description.name())).set("font-size", 20))
        .add(label(20.0, 54.0, &subtitle(description, map)).set("fill", "#555555"));
    let rows = description.with_plan(|plan| {
        let tops = (0..).map(|row| ROWS_TOP + ROW_HEIGHT * f64::from(row));
        map.regions().iter().zip(tops).fold(Group::new(), |rows, (region, top)| rows.add(draw(plan, map, region, top)))
    });
    let foot = "Widths are logarithmic. A section is written by its participant only; shared payload by all members.";
    let document =
        legend(sheet).add(rows).add(label(20.0, height - 12.0, foot).set("fill", "#555555").set("font-size", 12));
    format!("{document}\n")
}

fn subtitle(description: &Description, map: &MemoryMap) -> String {
    let place = match map.base() {
        Some(base) => format!("from {base:#x}"),
        None => "each region a memory object of its own, offsets show the order".to_owned(),
    };
    format!("{} in all, {place}; plan hash {:#018x}", SIZE.write(map.bytes()), description.hash())
}

fn legend(mut document: Document) -> Document {
    let mut left = 20.0;
    for (kind, name) in LEGEND {
        document = document.add(rectangle(left, 70.0, 16.0, 16.0, kind.color())).add(label(left + 22.0, 83.0, name));
        left += 22.0 + CHARACTER_WIDTH * name.len() as f64 + 34.0;
    }
    document
}

fn draw(plan: &Plan<'_>, map: &MemoryMap, region: &Region, top: f64) -> Group {
    let place = format!("{:#x}", map.base().unwrap_or(0) + region.offset);
    let mut group = Group::new()
        .add(label(20.0, top + 15.0, &region.name).set("font-weight", "bold"))
        .add(label(20.0, top + 31.0, &place).set("font-family", "monospace").set("font-size", 12))
        .add(label(BAR_LEFT + BAR_WIDTH + 12.0, top + 22.0, &SIZE.write(region.bytes)));
    let pieces = pieces(plan, region);
    let weights: Vec<f64> = pieces.iter().map(|piece| weight(piece.bytes)).collect();
    let scale = BAR_WIDTH / weights.iter().sum::<f64>();
    let mut left = BAR_LEFT;
    for (piece, weight) in pieces.iter().zip(weights) {
        let width = weight * scale;
        group = group.add(draw_piece(piece, left, top, width));
        left += width;
    }
    group
}

fn draw_piece(piece: &Piece, left: f64, top: f64, width: f64) -> Group {
    let tooltip = format!("{}: {}", piece.label, SIZE.write(piece.bytes));
    let group = Group::new().add(Title::new(tooltip)).add(rectangle(left, top, width, BAR_HEIGHT, piece.kind.color()));
    if CHARACTER_WIDTH * piece.label.chars().count() as f64 + 8.0 > width {
        return group;
    }
    group.add(label(left + width / 2.0, top + 22.0, &piece.label).set("text-anchor", "middle").set("font-size", 12))
}

fn pieces(plan: &Plan<'_>, region: &Region) -> Vec<Piece> {
    let mut pieces = Vec::new();
    match region.content {
        Content::Section { domain, .. } => push_parts(&mut pieces, plan, domain),
        Content::Slot { domain, .. } => {
            let bytes = u64::from(layout::root::WORDS * 4);
            pieces.push(Piece { kind: Kind::Header, label: "root".to_owned(), bytes });
            for bank in 0..layout::BANKS {
                let before = pieces.iter().map(|piece| piece.bytes).sum::<u64>();
                push_parts(&mut pieces, plan, domain);
                let here = pieces.iter().map(|piece| piece.bytes).sum::<u64>() - before;
                let section = (region.bytes - bytes) / layout::BANKS;
                if bank + 1 < layout::BANKS && here < section {
                    pieces.push(Piece { kind: Kind::Padding, label: "rest".to_owned(), bytes: section - here });
                }
            }
        }
        Content::Segment { smem } => {
            let smem = &plan.smems[usize::from(smem)];
            let bytes = u64::from(smem.bytes);
            pieces.push(Piece { kind: Kind::Shared, label: "shared payload".to_owned(), bytes });
        }
    }
    let rest = region.bytes - pieces.iter().map(|piece| piece.bytes).sum::<u64>();
    if rest > 0 {
        pieces.push(Piece { kind: Kind::Padding, label: "rest".to_owned(), bytes: rest });
    }
    pieces
}

fn push_parts(pieces: &mut Vec<Piece>, plan: &Plan<'_>, domain: u16) {
    // The length is known already; only the parts matter here.
    let _ = layout::walk(plan, domain, |part, _, bytes| pieces.push(piece(plan, part, u64::from(bytes))));
}

fn piece(plan: &Plan<'_>, part: Part, bytes: u64) -> Piece {
    let (kind, label) = match part {
        Part::Header => (Kind::Header, "header".to_owned()),
        Part::Tx(fifo) => (Kind::Sender, format!("{} >", plan.fifos[usize::from(fifo)].name)),
        Part::Rx(fifo) => (Kind::Receiver, format!("> {}", plan.fifos[usize::from(fifo)].name)),
        Part::Ticket(smem) => (Kind::Ticket, plan.smems[usize::from(smem)].name.to_owned()),
    };
    Piece { kind, label, bytes }
}

/// Share of a row; positive for every length.
fn weight(bytes: u64) -> f64 {
    f64::from(bytes.max(1).ilog2()) - 3.0_f64.min(f64::from(bytes.max(1).ilog2())) + 1.0
}

fn rectangle(left: f64, top: f64, width: f64, height: f64, fill: &str) -> Rectangle {
    Rectangle::new()
        .set("x", round(left))
        .set("y", round(top))
        .set("width", round(width))
        .set("height", round(height))
        .set("fill", fill)
        .set("stroke", "#333333")
}

fn label(left: f64, baseline: f64, text: &str) -> Text {
    Text::new(text).set("x", round(left)).set("y", round(baseline)).set("fill", "#111111")
}

/// To hundredths, so that the text is short and the same everywhere.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
