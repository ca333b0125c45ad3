//! Plots as SVG whose colours come from the page's style sheet.
//!
//! How it works: a [`Plot`] has two axes that map values to places; marks are drawn over a frame with ticks and labels.
//! Elements carry class names only, so one picture serves light and dark pages.

use std::fmt::Write;

use svg::node::element::{Group, Line, Path, Rectangle, SVG, Text};

const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 46.0;
/// Ticks on a linear axis, about.
const TICKS: f64 = 8.0;

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Even.
    Linear,
    /// By decades.
    Log,
}

/// What the numbers on an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Plain numbers.
    Number,
    /// Microseconds, written with the unit that fits.
    Time,
}

/// One axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// How values become places.
    pub scale: Scale,
    /// Smallest value; above 0 if logarithmic.
    pub from: f64,
    /// Largest value.
    pub to: f64,
    /// What the numbers are.
    pub unit: Unit,
    /// What it shows.
    pub label: &'static str,
}

/// A plot.
#[derive(Debug)]
pub struct Plot {
    x: Axis,
    y: Axis,
    picture: SVG,
}

impl Axis {
    /// Place of a value, 0 to 1; values outside are put on the edge.
    fn place(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log => (value.max(self.from) / self.from).ln() / (self.to / self.from).ln(),
        };
        part.clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => self.even_ticks(),
            Scale::Log => self.decades(),
        }
    }

    fn even_ticks(&self) -> Vec<f64> {
        let rough = (self.to - self.from) / TICKS;
        let magnitude = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.from / step).ceil();
        (0..=2 * TICKS as u32)
            .map(|n| (first + f64::from(n)) * step)
            .take_while(|tick| *tick <= self.to * 1.000_001)
            .collect()
    }

    fn decades(&self) -> Vec<f64> {
        let (first, last) = (self.from.log10().ceil() as i32, self.to.log10().floor() as i32);
        (first..=last).map(|power| 10f64.powi(power)).collect()
    }

    fn text(&self, value: f64) -> String {
        match self.unit {
            Unit::Number => number_text(value),
            Unit::Time => time_text(value),
        }
    }
}

/// Microseconds with the unit that fits.
pub fn time_text(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", number_text(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", number_text(us / 1e3)),
        us => format!("{} µs", number_text(us)),
    }
}

/// Three significant digits, without needless zeros.
pub fn number_text(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl Plot {
    /// An empty frame with ticks and labels; `title` is for those who cannot see it.
    pub fn new(title: &str, x: Axis, y: Axis) -> Plot {
        let picture = SVG::new().set("viewBox", (0, 0, WIDTH, HEIGHT)).set("role", "img").set("aria-label", title);
        let mut plot = Plot { x, y, picture };
        plot.draw_frame();
        plot
    }

    fn x_of(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y_of(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM)
    }

    fn draw_frame(&mut self) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let mut frame = Group::new();
        for tick in self.y.ticks() {
            let y = self.y_of(tick);
            frame = frame.add(stroke("grid", (LEFT, y), (right, y)));
            frame = frame.add(label("tick", (LEFT - 8.0, y + 4.0), "end", self.y.text(tick)));
        }
        for tick in self.x.ticks() {
            let x = self.x_of(tick);
            frame = frame.add(stroke("grid", (x, TOP), (x, bottom)));
            frame = frame.add(label("tick", (x, bottom + 18.0), "middle", self.x.text(tick)));
        }
        frame = frame.add(stroke("axis", (LEFT, bottom), (right, bottom)));
        frame = frame.add(label("label", (right, HEIGHT - 6.0), "end", self.x.label.to_owned()));
        frame = frame.add(label("label", (4.0, 14.0), "start", self.y.label.to_owned()));
        self.add(frame);
    }

    fn add(&mut self, node: impl svg::Node) {
        svg::Node::append(&mut self.picture, node);
    }

    /// Shades a range of x.
    pub fn shade(&mut self, from: f64, to: f64) {
        let (left, right) = (self.x_of(from), self.x_of(to));
        let shade = Rectangle::new().set("class", "shade").set("x", left).set("y", TOP);
        self.add(shade.set("width", (right - left).max(1.5)).set("height", HEIGHT - TOP - BOTTOM));
    }

    /// A vertical line with a text on top, which ends at the line if `before`.
    pub fn mark(&mut self, class: &str, at: f64, text: &str, before: bool) {
        let x = self.x_of(at);
        let (shift, anchor) = if before { (-4.0, "end") } else { (4.0, "start") };
        self.add(stroke(class, (x, TOP - 8.0), (x, HEIGHT - BOTTOM)));
        self.add(label("mark-text", (x + shift, TOP - 3.0), anchor, text.to_owned()));
    }

    /// A line through points.
    pub fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        let path = self.path_of(points);
        self.add(Path::new().set("class", format!("line {class}")).set("d", path));
    }

    /// The area between two lines over the same xs: x, lower, upper.
    pub fn area(&mut self, class: &str, points: &[(f64, f64, f64)]) {
        let upper = points.iter().map(|(x, _, upper)| (*x, *upper));
        let lower = points.iter().rev().map(|(x, lower, _)| (*x, *lower));
        let outline: Vec<_> = upper.chain(lower).collect();
        let path = self.path_of(&outline) + "Z";
        self.add(Path::new().set("class", format!("area {class}")).set("d", path));
    }

    /// Bars from the bottom: left, right, height.
    pub fn bars(&mut self, class: &str, bars: &[(f64, f64, f64)]) {
        let mut group = Group::new().set("class", format!("bar {class}"));
        for (from, to, height) in bars {
            let (left, right, top) = (self.x_of(*from), self.x_of(*to), self.y_of(*height));
            let bar = Rectangle::new().set("x", rounded(left + 0.5)).set("y", rounded(top));
            let bar = bar.set("width", rounded((right - left - 1.0).max(0.5)));
            group = group.add(bar.set("height", rounded(HEIGHT - BOTTOM - top)));
        }
        self.add(group);
    }

    /// A dot at each point.
    pub fn dots(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut path = String::new();
        for (x, y) in points {
            let _ = write!(path, "M{:.1} {:.1}h0", self.x_of(*x), self.y_of(*y));
        }
        self.add(Path::new().set("class", format!("dots {class}")).set("d", path));
    }

    fn path_of(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (at, (x, y)) in points.iter().enumerate() {
            let _ = write!(path, "{}{:.1} {:.1}", if at == 0 { 'M' } else { 'L' }, self.x_of(*x), self.y_of(*y));
        }
        path
    }

    /// The picture as an element of a page.
    pub fn finish(self) -> String {
        self.picture.to_string()
    }
}

fn stroke(class: &str, from: (f64, f64), to: (f64, f64)) -> Line {
    let line = Line::new().set("class", class).set("x1", rounded(from.0)).set("y1", rounded(from.1));
    line.set("x2", rounded(to.0)).set("y2", rounded(to.1))
}

fn label(class: &str, at: (f64, f64), anchor: &str, text: String) -> Text {
    let label = Text::new(text).set("class", class).set("text-anchor", anchor);
    label.set("x", rounded(at.0)).set("y", rounded(at.1))
}

fn rounded(place: f64) -> f64 {
    (place * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINEAR: Axis = Axis { scale: Scale::Linear, from: 0.0, to: 10.0, unit: Unit::Number, label: "x" };

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(LINEAR.ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let shifted = Axis { from: -20.0, to: 43.0, ..LINEAR };
        assert_eq!(shifted.ticks(), [-20.0, -10.0, 0.0, 10.0, 20.0, 30.0, 40.0]);
        let log = Axis { scale: Scale::Log, from: 0.5, to: 20_000.0, unit: Unit::Time, label: "y" };
        let texts: Vec<_> = log.ticks().into_iter().map(|tick| log.text(tick)).collect();
        assert_eq!(texts, ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]);
        assert_eq!((log.place(0.0), log.place(1e9)), (0.0, 1.0));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 0.25, 1.5, 12.34, 123.4, 1000.0].map(number_text),
            ["0", "0.25", "1.5", "12.3", "123", "1000"]
        );
    }
}
