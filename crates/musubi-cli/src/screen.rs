//! A picture that is drawn over itself on a terminal.
//!
//! What you may rely on: what does not fit is left out, so that the terminal never scrolls; the last line then says so.

use std::io::IsTerminal;

use crossterm::terminal;

/// Moves to the upper left corner, and clears what is below the cursor.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K\n";
const CLEAR_BELOW: &str = "\x1b[J";
/// A terminal that does not say how large it is.
const SIZE: (u16, u16) = (80, 24);

/// Characters of a line of the terminal that standard output is; `None` if it is none, so that nothing is left out.
pub fn width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    Some(usize::from(terminal::size().map_or(SIZE.0, |(width, _)| width).max(1)))
}

/// What draws this text over the former one.
pub fn redrawn(text: &str) -> String {
    let (width, height) = terminal::size().unwrap_or(SIZE);
    let room = usize::from(height.saturating_sub(1)).max(1);
    HOME.to_owned() + &fitted(text, usize::from(width), room) + CLEAR_BELOW
}

fn fitted(text: &str, width: usize, room: usize) -> String {
    let lines = text.lines().count();
    let shown = if lines > room { room - 1 } else { lines };
    let mut fitted: String = text.lines().take(shown).map(|line| cut(line, width) + CLEAR_LINE).collect();
    if shown < lines {
        fitted +=
            &(cut(&format!("and {} more lines: a higher terminal shows them", lines - shown), width) + CLEAR_LINE);
    }
    fitted
}

/// The first `width` visible characters; escape sequences take no room and are kept.
pub fn cut(line: &str, width: usize) -> String {
    let (mut room, mut is_escape) = (width, false);
    let keep = |character: &char| {
        is_escape |= *character == '\x1b';
        let keeps = is_escape || room > 0;
        if !is_escape {
            room = room.saturating_sub(1);
        }
        is_escape &= *character != 'm';
        keeps
    };
    line.chars().filter(keep).collect()
}

/// Asserts that no visible line of `draw` is longer than terminals of usual widths, that all is shown where there is room
/// or no terminal, and that the least columns go first.
#[cfg(test)]
pub fn assert_fits(draw: impl Fn(Option<usize>) -> String) {
    let visible = |text: &str| anstream::adapter::strip_str(text).to_string();
    let whole = visible(&draw(None));
    assert!(!whole.contains("Not shown"), "{whole}");
    let columns = |text: &str| text.matches(['┆', '│']).count();
    let mut former = 0;
    for width in [60, 80, 100, 130, 200] {
        let fitted = visible(&draw(Some(width)));
        let long: Vec<&str> = fitted.lines().filter(|line| line.chars().count() > width).collect();
        assert!(long.is_empty(), "longer than {width}: {long:#?}");
        assert!(columns(&fitted) >= former, "fewer columns at {width}: {fitted}");
        former = columns(&fitted);
    }
    assert_eq!(visible(&draw(Some(1000))), whole);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_width_of_a_terminal() {
        assert_eq!(cut("plain text", 5), "plain");
        assert_eq!(cut("a \x1b[36mcoloured\x1b[39m word", 6), "a \x1b[36mcolo\x1b[39m");
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said() {
        let all = fitted("one\ntwo\nthree\n", 80, 3);
        assert_eq!(all, ["one", "two", "three", ""].join(CLEAR_LINE));
        let some = fitted("one\ntwo\nthree\nfour\n", 20, 3);
        assert_eq!(some, ["one", "two", "and 2 more lines: a ", ""].join(CLEAR_LINE));
        assert_eq!(fitted("one\ntwo\n", 80, 1).lines().count(), 1);
    }
}
