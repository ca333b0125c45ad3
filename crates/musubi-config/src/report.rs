//! Mistakes of a description, all at once, each with its place.
//!
//! What you may rely on: findings are in the order of their places; lines and columns count from 1, columns in
//! characters; text of the file never reaches the terminal with control characters in it.
//!
//! How it works: [`Findings`] collects while the file is read, [`Report`] owns the result with the text and renders it
//! with annotate-snippets, the renderer of rustc and cargo.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

/// Most findings that are rendered; the rest is counted.
const RENDERED_MAX: usize = 100;

/// Longest piece of the text that is rendered for one finding; a longer one is not shown, only its place.
const EXCERPT_BYTES_MAX: usize = 32 << 10;
/// Most findings that are kept; a file with more is not a description.
const FINDINGS_MAX: usize = 1000;

/// Bytes of the description's text.
pub(crate) type Span = Range<usize>;

/// How far a mistake reaches, which decides what is said beside syntax errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// The text is not TOML there.
    Syntax,
    /// One value is wrong by itself.
    Value,
    /// Something is missing, unknown, or does not fit something else: possibly the consequence of a syntax error.
    Relation,
}

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Findings {
    list: Vec<Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    scope: Scope,
    span: Span,
    message: String,
    label: String,
    also: Vec<(Span, String)>,
    help: Option<String>,
}

impl Problem {
    /// Shows a second place, such as the first of two equal names.
    pub(crate) fn also(&mut self, span: Span, label: impl Into<String>) -> &mut Problem {
        self.also.push((span, label.into()));
        self
    }

    /// Says what to do.
    pub(crate) fn help(&mut self, help: impl Into<String>) -> &mut Problem {
        self.help = Some(help.into());
        self
    }
}

impl Findings {
    /// Records a mistake; `label` stands beside the marked text.
    pub(crate) fn add(
        &mut self,
        scope: Scope,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> &mut Problem {
        let (message, label) = (message.into(), label.into());
        self.list.truncate(FINDINGS_MAX - 1);
        let number = self.list.len();
        self.list.push(Problem { scope, span, message, label, also: Vec::new(), help: None });
        &mut self.list[number]
    }

    /// Whether another mistake would only take the place of the last one.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= FINDINGS_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn into_report(mut self, name: &str, text: &str) -> Report {
        self.list.iter_mut().for_each(|problem| problem.fit(text));
        self.list.sort_by_key(|problem| (problem.span.start, problem.scope));
        self.list.dedup();
        let text = Text::new(text);
        self.leave_out_consequences(&text);
        Report { name: name.to_owned(), text, problems: self.list, unreadable: None }
    }

    /// Beside syntax errors, keeps only mistakes of single values on lines that are valid.
    fn leave_out_consequences(&mut self, text: &Text) {
        let broken_lines: Vec<usize> =
            self.list.iter().filter(|p| p.scope == Scope::Syntax).map(|p| text.line(p.span.start)).collect();
        if broken_lines.is_empty() {
            return;
        }
        self.list.retain(|problem| match problem.scope {
            Scope::Syntax => true,
            Scope::Value => broken_lines.binary_search(&text.line(problem.span.start)).is_err(),
            Scope::Relation => false,
        });
    }
}

impl Problem {
    /// Moves the spans to character boundaries inside the text, which the renderer relies on.
    fn fit(&mut self, text: &str) {
        self.span = fit(&self.span, text);
        for (span, _) in &mut self.also {
            *span = fit(span, text);
        }
    }
}

fn fit(span: &Span, text: &str) -> Span {
    let start = text.floor_char_boundary(span.start);
    let end = text.ceil_char_boundary(span.end.max(start));
    start..end
}

/// All mistakes of one description file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    name: String,
    text: Text,
    problems: Vec<Problem>,
    unreadable: Option<String>,
}

/// One mistake, for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Line, counted from 1; 0 if the file could not be read.
    pub line: usize,
    /// Column in characters, counted from 1; 0 if the file could not be read.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it, where that can be said.
    pub help: Option<String>,
}

impl Report {
    pub(crate) fn unreadable(name: String, reason: String) -> Report {
        Report { name, text: Text::new(""), problems: Vec::new(), unreadable: Some(reason) }
    }

    /// The mistakes in the order of their places; never empty.
    pub fn errors(&self) -> Vec<Finding> {
        let unreadable = self.unreadable.iter().map(|reason| Finding {
            line: 0,
            column: 0,
            message: format!("{}: {reason}", self.name),
            help: None,
        });
        let found = self.problems.iter().map(|problem| {
            let (line, column) = self.text.place(problem.span.start);
            Finding { line, column, message: problem.message.clone(), help: problem.help.clone() }
        });
        unreadable.chain(found).collect()
    }

    /// The mistakes for a person, with the lines they stand on; `color` adds terminal colours.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut out = String::new();
        if let Some(reason) = &self.unreadable {
            let message = format!("{}: {reason}", self.name);
            out.push_str(&renderer.render(&[Group::with_title(Level::ERROR.primary_title(message))]));
            out.push('\n');
        }
        for problem in self.problems.iter().take(RENDERED_MAX) {
            out.push_str(&renderer.render(&[self.group(problem)]));
            out.push_str("\n\n");
        }
        out.push_str(&renderer.render(&[Group::with_title(Level::ERROR.primary_title(self.summary()))]));
        out
    }

    fn group<'a>(&'a self, problem: &'a Problem) -> Group<'a> {
        let title = Level::ERROR.primary_title(problem.message.as_str());
        let all = problem.also.iter().fold(problem.span.clone(), |all, (span, _)| join(&all, span));
        let group = match (self.text.excerpt(&all), self.text.excerpt(&problem.span)) {
            (Some(excerpt), _) => title.element(self.snippet(&excerpt, problem, &problem.also)),
            (None, Some(excerpt)) => title.element(self.snippet(&excerpt, problem, &[])),
            (None, None) => {
                let (line, column) = self.text.place(problem.span.start);
                title.element(Origin::path(self.name.as_str()).line(line).char_column(column))
            }
        };
        match &problem.help {
            Some(help) => group.element(Level::HELP.message(help.as_str())),
            None => group,
        }
    }

    fn snippet<'a>(
        &'a self,
        excerpt: &Span,
        problem: &'a Problem,
        also: &'a [(Span, String)],
    ) -> Snippet<'a, Annotation<'a>> {
        let inside = |span: &Span| span.start - excerpt.start..span.end - excerpt.start;
        let main = AnnotationKind::Primary.span(inside(&problem.span)).label(problem.label.as_str());
        let others = also.iter().map(|(span, label)| AnnotationKind::Context.span(inside(span)).label(label));
        Snippet::source(&self.text.text[excerpt.clone()])
            .line_start(self.text.line(excerpt.start))
            .path(self.name.as_str())
            .annotation(main)
            .annotations(others)
    }

    fn summary(&self) -> String {
        match (self.problems.len(), &self.unreadable) {
            (_, Some(_)) => "there is no description".to_owned(),
            (1, _) => format!("1 mistake in {}", self.name),
            (count, _) if count > RENDERED_MAX => {
                format!("{count} mistakes in {}, of which the first {RENDERED_MAX} are shown", self.name)
            }
            (count, _) => format!("{count} mistakes in {}", self.name),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Report {}

fn join(one: &Span, other: &Span) -> Span {
    one.start.min(other.start)..one.end.max(other.end)
}

/// A text whose lines can be found without reading it again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    text: String,
    /// Where the second and each further line begins.
    line_starts: Vec<usize>,
}

impl Text {
    fn new(text: &str) -> Text {
        let line_starts = text.match_indices('\n').map(|(newline, _)| newline + 1).collect();
        Text { text: text.to_owned(), line_starts }
    }

    /// Line of a byte offset, counted from 1.
    fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset) + 1
    }

    /// Where the line of a byte offset begins.
    fn line_start(&self, offset: usize) -> usize {
        let before = self.line(offset) - 1;
        before.checked_sub(1).and_then(|line| self.line_starts.get(line).copied()).unwrap_or(0)
    }

    /// Line and column of a byte offset, counted from 1, the column in characters.
    fn place(&self, offset: usize) -> (usize, usize) {
        (self.line(offset), self.text[self.line_start(offset)..offset].chars().count() + 1)
    }

    /// The whole lines of a span, if they are not too long to be shown.
    fn excerpt(&self, span: &Span) -> Option<Span> {
        let end = self.line_starts.get(self.line(span.end) - 1).copied().unwrap_or(self.text.len());
        let lines = self.line_start(span.start)..end;
        (lines.len() <= EXCERPT_BYTES_MAX).then_some(lines)
    }
}
