//! Tables for people, that fit a terminal: columns that matter less are left out, and the table says which.
//!
//! What you may rely on: with a width, no line is longer than it as long as the columns that matter most fit; where even
//! they do not, their longest cells are wrapped at words. Without a width, as where the output is a file, all is shown.
//!
//! How it works: each column has a rank. The column of the highest rank goes first, of equals the rightmost; rank 0 stays.
//!
//! What it does not do: ask how wide a terminal is, or cut a cell.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Row};

/// A column: its heading, which way its cells lie, and how soon it is left out.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    heading: &'static str,
    alignment: CellAlignment,
    rank: u8,
}

impl Column {
    /// A column of words.
    pub const fn words(heading: &'static str, rank: u8) -> Column {
        Column { heading, alignment: CellAlignment::Left, rank }
    }

    /// A column of numbers.
    pub const fn number(heading: &'static str, rank: u8) -> Column {
        Column { heading, alignment: CellAlignment::Right, rank }
    }
}

/// A table; each row has a cell for each column.
#[derive(Clone, Debug)]
pub struct Table {
    columns: &'static [Column],
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub const fn new(columns: &'static [Column]) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row at the end.
    pub fn add_row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table in so many characters a line, with a line feed at its end, and what it leaves out.
    pub fn fitted(&self, width: Option<usize>) -> String {
        let Some(width) = width else { return format!("{}\n", self.drawn(&self.all())) };
        let shown = self.shown(width);
        let mut table = self.drawn(&shown);
        if natural_width(&table) > width {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.min(u16::MAX.into()) as u16);
        }
        let hidden = self.columns.iter().enumerate().filter(|(number, _)| !shown.contains(number));
        let hidden: Vec<&str> = hidden.map(|(_, column)| column.heading).collect();
        if hidden.is_empty() {
            return format!("{table}\n");
        }
        let note = format!("Not shown, for want of room: {}.\n", hidden.join(", "));
        format!("{table}\n{}", wrapped(&note, Some(width)))
    }

    fn all(&self) -> Vec<usize> {
        (0..self.columns.len()).collect()
    }

    /// The columns that fit.
    fn shown(&self, width: usize) -> Vec<usize> {
        let mut shown = self.all();
        while natural_width(&self.drawn(&shown)) > width {
            let last = shown.iter().enumerate().max_by_key(|(_, column)| self.columns[**column].rank);
            match last {
                Some((at, column)) if self.columns[*column].rank > 0 => drop(shown.remove(at)),
                _ => break,
            }
        }
        shown
    }

    fn drawn(&self, shown: &[usize]) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        let headings = shown.iter().map(|column| self.columns[*column].heading);
        table.load_style(UTF8_FULL_CONDENSED).set_header(headings);
        for row in &self.rows {
            let cell = |column: &usize| {
                let text = row.get(*column).map_or("", String::as_str);
                Cell::new(text).set_alignment(self.columns[*column].alignment)
            };
            table.add_row(Row::from(shown.iter().map(cell).collect::<Vec<_>>()));
        }
        for (at, column) in shown.iter().enumerate() {
            if let Some(drawn) = table.column_mut(at) {
                drawn.set_cell_alignment(self.columns[*column].alignment);
            }
        }
        table
    }
}

/// Characters of a line that shows every cell whole: a border and two blanks a column, and a last border.
fn natural_width(table: &comfy_table::Table) -> usize {
    table.column_max_content_widths().into_iter().map(|width| usize::from(width) + 3).sum::<usize>() + 1
}

/// Text whose lines are broken at blanks to fit; a longer word stands by itself.
pub fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            let length = word.trim_end().chars().count();
            if column > 0 && column + length > width {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                column = 0;
            }
            out.push_str(word);
            column += word.chars().count();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column::words("name", 0),
        Column::number("first number", 2),
        Column::number("second number", 1),
        Column::words("least", 2),
    ];

    fn table() -> Table {
        let mut table = Table::new(COLUMNS);
        table.add_row(["one", "1", "2", "words at the end"]);
        table.add_row(["another", "1234567", "2", "-"]);
        table
    }

    fn longest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn columns_go_by_rank_and_the_rightmost_first() {
        let whole = table().fitted(None);
        assert_eq!((longest(&whole), whole.contains("Not shown")), (61, false));
        assert_eq!(table().fitted(Some(61)), whole);
        let some = table().fitted(Some(60));
        assert!(some.contains("first number") && some.ends_with("for want of room: least.\n"), "{some}");
        let fewer = table().fitted(Some(40));
        assert!(fewer.contains("\nNot shown, for want of room: first\nnumber, least.\n"), "{fewer}");
        assert!(fewer.contains("second number"), "{fewer}");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        for width in 20..80 {
            let drawn = table().fitted(Some(width));
            assert!(longest(&drawn) <= width, "{width}: {drawn}");
            assert!(drawn.contains("another"), "the name stays");
        }
    }

    #[test]
    fn what_must_stay_is_wrapped_at_words() {
        const WHAT: &[Column] = &[Column::words("what", 0)];
        let mut table = Table::new(WHAT);
        table.add_row(["a line of several words that is longer than the room"]);
        let drawn = table.fitted(Some(24));
        assert!(longest(&drawn) <= 24 && drawn.contains("several"), "{drawn}");
    }

    #[test]
    fn text_is_broken_at_blanks() {
        assert_eq!(wrapped("one two three\nfour\n", Some(8)), "one two\nthree\nfour\n");
        assert_eq!(wrapped("one two", None), "one two");
        assert_eq!(wrapped("unbreakable word", Some(5)), "unbreakable\nword");
    }
}
