//! What a test program said about each test that failed.
//!
//! What you may rely on: however long the rest of the output is, the panic of a failed test is shown.
//!
//! How it works: behind `failures:` a test program repeats what each failed test wrote, under `---- NAME stdout ----`.

/// Most failed tests that are shown.
const TESTS_MAX: usize = 10;
/// Most lines that are shown of one.
const LINES_MAX: usize = 60;
/// Of those, lines before its panic; behind it comes a backtrace, which may be long.
const LINES_BEFORE_PANIC: usize = 30;
/// Most lines of a panic that go into the one line of a note.
const PANIC_LINES_MAX: usize = 4;

/// A failed test.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure<'t> {
    /// Its name.
    pub name: &'t str,
    /// What it wrote.
    pub lines: Vec<&'t str>,
}

/// Every failed test of every test program in this output, in order.
pub fn of_output(text: &str) -> Vec<Failure<'_>> {
    let mut found: Vec<Failure> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        if let Some(name) = title(line) {
            found.push(Failure { name, lines: Vec::new() });
            is_inside = true;
        } else if line == "failures:" || line.starts_with("test result: ") {
            is_inside = false;
        } else if let Some(last) = found.last_mut().filter(|_| is_inside) {
            last.lines.push(line);
        }
    }
    found.iter_mut().for_each(|failure| trim(&mut failure.lines));
    found
}

fn title(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

fn trim(lines: &mut Vec<&str>) {
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    let blank = lines.iter().take_while(|line| line.trim().is_empty()).count();
    lines.drain(..blank);
}

/// What to show of these tests: the first [`TESTS_MAX`], of each [`LINES_MAX`] lines around its panic.
pub fn shown(failures: &[Failure<'_>]) -> Vec<String> {
    let mut shown = Vec::new();
    for failure in failures.iter().take(TESTS_MAX) {
        shown.push(format!("---- {} ----", failure.name));
        let beyond = failure.lines.len().saturating_sub(LINES_MAX);
        let hidden = panic_line(failure).map_or(beyond, |line| line.saturating_sub(LINES_BEFORE_PANIC).min(beyond));
        if hidden > 0 {
            shown.push(format!("... {hidden} lines before these"));
        }
        shown.extend(failure.lines[hidden..].iter().take(LINES_MAX).map(|line| (*line).to_owned()));
    }
    if failures.len() > TESTS_MAX {
        shown.push(format!("... and {} failed tests more", failures.len() - TESTS_MAX));
    }
    shown
}

/// Where and why a test panicked, in one line.
pub fn panic_of(failure: &Failure<'_>) -> Option<String> {
    let begin = panic_line(failure)?;
    let place = failure.lines[begin].split_once(" panicked at ")?.1;
    let rest = failure.lines[begin + 1..].iter().map(|line| line.trim());
    let is_reason = |line: &&str| !line.is_empty() && !line.starts_with("note: ") && *line != "stack backtrace:";
    let reason = rest.take_while(is_reason).take(PANIC_LINES_MAX);
    Some(std::iter::once(place).chain(reason).collect::<Vec<_>>().join(" "))
}

fn panic_line(failure: &Failure<'_>) -> Option<usize> {
    failure.lines.iter().position(|line| line.starts_with("thread '") && line.contains(" panicked at "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
     Running unittests src/lib.rs (target/debug/deps/a-1)

running 3 tests
test good ... ok
test one::bad ... FAILED
test two::bad - should panic ... FAILED

failures:

---- one::bad stdout ----
it said this

thread 'one::bad' (4711) panicked at crates/a/src/lib.rs:7:9:
assertion `left == right` failed: numbers
  left: 1
 right: 2
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

---- two::bad - should panic stdout ----
note: test did not panic as expected

failures:
    one::bad
    two::bad - should panic

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/b.rs (target/debug/deps/b-2)

failures:

---- three stdout ----

Error: Broken

failures:
    three

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
error: 2 targets failed:
";

    #[test]
    fn each_failed_test_is_found_with_what_it_wrote() {
        let found = of_output(SAMPLE);
        assert_eq!(found.iter().map(|f| f.name).collect::<Vec<_>>(), ["one::bad", "two::bad - should panic", "three"]);
        assert_eq!((found[0].lines.len(), found[0].lines[0]), (7, "it said this"));
        assert_eq!(found[1].lines, ["note: test did not panic as expected"]);
        assert_eq!(found[2].lines, ["Error: Broken"]);
        assert_eq!(of_output("test good ... ok\ntest result: ok. 1 passed\n"), []);
    }

    #[test]
    fn a_panic_is_told_in_one_line() {
        let found = of_output(SAMPLE);
        let told = "crates/a/src/lib.rs:7:9: assertion `left == right` failed: numbers left: 1 right: 2";
        assert_eq!(panic_of(&found[0]).as_deref(), Some(told));
        assert_eq!(panic_of(&found[2]), None);
    }

    #[test]
    fn a_backtrace_hides_no_panic() {
        let before = (0..40).map(|number| number.to_string());
        let panic = ["thread 'a' (1) panicked at a.rs:1:2:", "no", "stack backtrace:"].map(str::to_owned);
        let behind = (0..90).map(|frame| format!("  {frame}: f"));
        let lines: Vec<String> = before.chain(panic).chain(behind).collect();
        let failure = Failure { name: "a", lines: lines.iter().map(String::as_str).collect() };
        assert_eq!(panic_of(&failure).as_deref(), Some("a.rs:1:2: no"));
        let shown = shown(&[failure]);
        assert_eq!(shown[1..3], ["... 10 lines before these", "10"]);
        assert_eq!((shown[32].as_str(), shown[33].as_str()), ("thread 'a' (1) panicked at a.rs:1:2:", "no"));
        assert_eq!(shown.len(), 2 + LINES_MAX);
    }

    #[test]
    fn long_ones_and_many_are_cut() {
        let lines: Vec<String> = (0..LINES_MAX + 5).map(|number| number.to_string()).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let many: Vec<Failure> = (0..TESTS_MAX + 2).map(|_| Failure { name: "a", lines: lines.clone() }).collect();
        let shown = shown(&many);
        assert_eq!(shown[..3], ["---- a ----", "... 5 lines before these", "5"]);
        assert_eq!(shown.last().map(String::as_str), Some("... and 2 failed tests more"));
        assert_eq!(shown.len(), TESTS_MAX * (LINES_MAX + 2) + 1);
    }
}
