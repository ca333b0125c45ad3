//! MG, "multigrid": four V-cycles that bring a discrete Poisson equation nearer to its solution, on a cube without edges.
//!
//! How it works: a worker has a share of each level's planes and sees one plane of its neighbour on either side, which is
//! renewed whenever that one changed it. Levels whose planes are few go the same way, so that each plane is computed by one
//! worker only.
//!
//! Where it comes from: section 2.2.4 of RNR-94-007; the charges and the value of class S as in NPB 2.

use core::ops::Range;

use super::random::Random;
use super::reals::{self, Reader};
use super::{Lost, Team, others, share};

/// Levels: the coarsest has an edge of 2, the finest of class S one of 32.
const LEVELS: usize = 5;
/// Points of an edge, finest level.
const EDGE: usize = 1 << LEVELS;
const CYCLES: u32 = 4;
/// Charges of each sign.
const CHARGES: usize = 10;
const SEED: u64 = 314_159_265;
/// Published norm of class S.
const NORM: f64 = 0.530_770_700_573_4e-4;
const TOLERANCE: f64 = 1e-8;
/// Points of all levels together.
const POINTS: usize = level(LEVELS - 1).end;
/// Words of a message: two planes of the finest level.
const MESSAGE_WORDS: usize = 2 * 2 * EDGE * EDGE;

/// What a point, and each of those that touch it by face, edge and corner, count for.
type Weights = [f64; 4];
/// The operator of the equation, negative.
const LESS_OPERATOR: Weights = [8.0 / 3.0, 0.0, -1.0 / 6.0, -1.0 / 12.0];
/// The smoother of class S.
const SMOOTHER: Weights = [-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0, 0.0];
/// From a finer level to a coarser.
const PROJECTION: Weights = [1.0 / 2.0, 1.0 / 4.0, 1.0 / 8.0, 1.0 / 16.0];

/// Points of an edge of a level.
const fn edge(level: usize) -> usize {
    2 << level
}

/// Where a level's points lie.
const fn level(level: usize) -> Range<usize> {
    let mut begin = 0;
    let mut lower = 0;
    while lower < level {
        begin += edge(lower) * edge(lower) * edge(lower);
        lower += 1;
    }
    begin..begin + edge(level) * edge(level) * edge(level)
}

/// A worker's memory.
#[derive(Debug)]
pub struct Workspace {
    /// Solution, or correction of it, on each level.
    solution: [f64; POINTS],
    /// What it misses on each level.
    rest: [f64; POINTS],
    /// Charges.
    charges: [f64; EDGE * EDGE * EDGE],
    message: [u32; MESSAGE_WORDS],
}

impl Workspace {
    /// Memory of which nothing was used.
    #[allow(clippy::new_without_default, reason = "it is a static, or large")]
    pub const fn new() -> Self {
        let charges = [0.0; EDGE * EDGE * EDGE];
        Self { solution: [0.0; POINTS], rest: [0.0; POINTS], charges, message: [0; MESSAGE_WORDS] }
    }
}

/// What MG found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Root of the mean square of what is missed in the end.
    pub norm: f64,
}

impl Outcome {
    /// Whether it is the published value of class S.
    pub fn is_right(&self) -> bool {
        ((self.norm - NORM) / NORM).abs() <= TOLERANCE
    }
}

/// Places the charges: +1 where the largest of the random numbers would stand, -1 where the smallest would. Not part of
/// what is timed.
pub fn prepare(_: &impl Team, space: &mut Workspace) {
    let mut random = Random::new(SEED, 0);
    let (mut largest, mut smallest) = ([(f64::MIN, 0); CHARGES], [(f64::MAX, 0); CHARGES]);
    for place in 0..space.charges.len() {
        let value = random.next();
        keep(&mut largest, (value, place), |a, b| a > b);
        keep(&mut smallest, (value, place), |a, b| a < b);
    }
    space.charges.fill(0.0);
    largest.iter().for_each(|(_, place)| space.charges[*place] = 1.0);
    smallest.iter().for_each(|(_, place)| space.charges[*place] = -1.0);
}

/// Keeps the first values by an order.
fn keep(kept: &mut [(f64, usize); CHARGES], new: (f64, usize), is_before: fn(f64, f64) -> bool) {
    let place = kept.iter().position(|(value, _)| is_before(new.0, *value)).unwrap_or(CHARGES);
    if place < CHARGES {
        kept[place..].rotate_right(1);
        kept[place] = new;
    }
}

/// Runs MG; every worker gets the same outcome. [`prepare`] comes first.
///
/// # Errors
/// [`Lost`].
pub fn run(team: &mut impl Team, space: &mut Workspace) -> Result<Outcome, Lost> {
    let mut cycle = Cycle { team, space };
    cycle.space.solution.fill(0.0);
    cycle.miss_of_charges()?;
    for _ in 0..CYCLES {
        cycle.turn()?;
        cycle.miss_of_charges()?;
    }
    let own = cycle.planes(LEVELS - 1);
    let points = own.start * EDGE * EDGE..own.end * EDGE * EDGE;
    let squares = cycle.space.rest[level(LEVELS - 1)][points].iter().map(|rest| rest * rest).sum();
    let sum = reals::sum(team, squares)?;
    Ok(Outcome { norm: libm::sqrt(sum / (EDGE * EDGE * EDGE) as f64) })
}

/// The steps of a cycle, on a worker's planes.
struct Cycle<'w, T> {
    team: &'w mut T,
    space: &'w mut Workspace,
}

impl<T: Team> Cycle<'_, T> {
    /// Down to the coarsest level, and up with the correction.
    fn turn(&mut self) -> Result<(), Lost> {
        for coarse in (0..LEVELS - 1).rev() {
            self.project(coarse)?;
        }
        self.space.solution[level(0)].fill(0.0);
        self.smooth(0)?;
        for fine in 1..LEVELS {
            if fine < LEVELS - 1 {
                self.space.solution[level(fine)].fill(0.0);
            }
            self.interpolate(fine)?;
            if fine < LEVELS - 1 {
                self.miss_of_rest(fine)?
            } else {
                self.miss_of_charges()?
            }
            self.smooth(fine)?;
        }
        Ok(())
    }

    /// What the solution of the finest level misses: charges less the operator's image.
    fn miss_of_charges(&mut self) -> Result<(), Lost> {
        let own = self.planes(LEVELS - 1);
        let points = own.start * EDGE * EDGE..own.end * EDGE * EDGE;
        let Workspace { solution, rest, charges, .. } = &mut *self.space;
        let (solution, rest) = (&solution[level(LEVELS - 1)], &mut rest[level(LEVELS - 1)]);
        rest[points.clone()].copy_from_slice(&charges[points]);
        add_image(EDGE, own, LESS_OPERATOR, solution, rest);
        self.renew(LEVELS - 1, Field::Rest)
    }

    /// What the correction of a level misses of the rest there.
    fn miss_of_rest(&mut self, at: usize) -> Result<(), Lost> {
        let own = self.planes(at);
        let Workspace { solution, rest, .. } = &mut *self.space;
        add_image(edge(at), own, LESS_OPERATOR, &solution[level(at)], &mut rest[level(at)]);
        self.renew(at, Field::Rest)
    }

    fn smooth(&mut self, at: usize) -> Result<(), Lost> {
        let own = self.planes(at);
        let Workspace { solution, rest, .. } = &mut *self.space;
        add_image(edge(at), own, SMOOTHER, &rest[level(at)], &mut solution[level(at)]);
        self.renew(at, Field::Solution)
    }

    fn project(&mut self, coarse: usize) -> Result<(), Lost> {
        let own = self.planes(coarse);
        let (lower, upper) = self.space.rest.split_at_mut(level(coarse).end);
        let fine = &upper[..level(coarse + 1).len()];
        let (n, points) = (edge(coarse), &mut lower[level(coarse)]);
        for (plane, row) in own.flat_map(|plane| (0..n).map(move |row| (plane, row))) {
            let sums = Sums::of(fine, 2 * n, 2 * plane + 1, 2 * row + 1);
            let line = &mut points[(plane * n + row) * n..][..n];
            line.iter_mut().enumerate().for_each(|(place, point)| *point = sums.weighted(2 * place + 1, PROJECTION));
        }
        self.renew(coarse, Field::Rest)
    }

    /// Adds the correction of the next coarser level, points between two or more of its points having their mean.
    fn interpolate(&mut self, fine: usize) -> Result<(), Lost> {
        let own = self.planes(fine);
        let (lower, upper) = self.space.solution.split_at_mut(level(fine).start);
        let (coarse, n) = (&lower[level(fine - 1)], edge(fine));
        let points = &mut upper[..level(fine).len()];
        for (plane, row) in own.flat_map(|plane| (0..n).map(move |row| (plane, row))) {
            let mean = mean_line(coarse, n / 2, plane, row);
            let line = &mut points[(plane * n + row) * n..][..n];
            for (place, pair) in line.chunks_exact_mut(2).enumerate() {
                pair[0] += 0.5 * (mean[(place + n / 2 - 1) % (n / 2)] + mean[place]);
                pair[1] += mean[place];
            }
        }
        self.renew(fine, Field::Solution)
    }

    /// This worker's planes of a level.
    fn planes(&self, at: usize) -> Range<usize> {
        planes(self.team, self.team.rank(), at)
    }

    /// Shows the neighbours the planes that they see, and sees theirs.
    fn renew(&mut self, at: usize, field: Field) -> Result<(), Lost> {
        let Workspace { solution, rest, message, .. } = &mut *self.space;
        let points = match field {
            Field::Solution => &mut solution[level(at)],
            Field::Rest => &mut rest[level(at)],
        };
        let size = edge(at) * edge(at);
        for other in others(self.team).into_iter().take(self.team.size() - 1) {
            let (own, theirs) = (planes(self.team, self.team.rank(), at), planes(self.team, other, at));
            let shown = seen(&own, &theirs, edge(at)).into_iter().flatten();
            let numbers = shown.flat_map(|plane| points[plane * size..][..size].iter().copied());
            let words = reals::write(numbers, message);
            let wanted = seen(&theirs, &own, edge(at));
            let mut places = wanted.into_iter().flatten().flat_map(|plane| plane * size..(plane + 1) * size);
            let mut reader = Reader::default();
            self.team.swap(other, words, &mut |piece| {
                reader.read(piece, |_, number| places.by_ref().take(1).for_each(|place| points[place] = number));
            })?;
        }
        Ok(())
    }
}

/// What is renewed.
#[derive(Clone, Copy)]
enum Field {
    Solution,
    Rest,
}

/// Planes of a level that a worker computes.
fn planes(team: &impl Team, worker: usize, at: usize) -> Range<usize> {
    let (first, end) = share(worker, team.size(), edge(at));
    first..end
}

/// Which planes of `owner` lie beside those of `viewer`, of `n` planes in a ring; a plane on both sides counts once.
fn seen(owner: &Range<usize>, viewer: &Range<usize>, n: usize) -> [Option<usize>; 2] {
    // Who has no plane of a coarse level may have one of the next, which lies between these two.
    let (before, behind) = ((viewer.start + n - 1) % n, viewer.end % n);
    let of_owner = |plane| owner.contains(&plane).then_some(plane);
    [of_owner(before), of_owner(behind).filter(|plane| *plane != before)]
}

/// Line `row` of plane `plane` of a finer level, as the mean of the lines of the coarser level beside it.
fn mean_line(coarse: &[f64], n: usize, plane: usize, row: usize) -> [f64; EDGE / 2] {
    // An odd place stands on the coarser level's point, an even one between two.
    let beside = |place: usize| [(place / 2 + n - (place + 1) % 2) % n, place / 2];
    let mut mean = [0.0; EDGE / 2];
    for (plane, row) in beside(plane).into_iter().flat_map(|plane| beside(row).map(|row| (plane, row))) {
        let line = &coarse[(plane * n + row) * n..][..n];
        mean.iter_mut().zip(line).for_each(|(mean, point)| *mean += 0.25 * point);
    }
    mean
}

/// Adds the weighted sums around each point of `source` to `target`.
fn add_image(n: usize, own: Range<usize>, weights: Weights, source: &[f64], target: &mut [f64]) {
    for (plane, row) in own.flat_map(|plane| (0..n).map(move |row| (plane, row))) {
        let sums = Sums::of(source, n, plane, row);
        let line = &mut target[(plane * n + row) * n..][..n];
        line.iter_mut().enumerate().for_each(|(place, point)| *point += sums.weighted(place, weights));
    }
}

/// Sums over the lines around one line, with the ends of the ring repeated on both sides.
struct Sums {
    /// The line itself.
    line: [f64; EDGE + 2],
    /// The four lines that touch it by a face.
    faces: [f64; EDGE + 2],
    /// The four that touch it by an edge.
    edges: [f64; EDGE + 2],
}

impl Sums {
    #[inline(always)]
    fn of(source: &[f64], n: usize, plane: usize, row: usize) -> Self {
        let around = |place: usize| [(place + n - 1) % n, place % n, (place + 1) % n];
        let (planes, rows) = (around(plane), around(row));
        let line = |plane: usize, row: usize| &source[(planes[plane] * n + rows[row]) * n..][..n];
        let four = |[a, b, c, d]: [&[f64]; 4]| ring(n, |place| (a[place] + b[place]) + (c[place] + d[place]));
        let middle = line(1, 1);
        Self {
            line: ring(n, |place| middle[place]),
            faces: four([line(0, 1), line(2, 1), line(1, 0), line(1, 2)]),
            edges: four([line(0, 0), line(0, 2), line(2, 0), line(2, 2)]),
        }
    }

    /// The weighted sum around one point.
    #[inline(always)]
    fn weighted(&self, place: usize, weights: Weights) -> f64 {
        let (before, at, behind) = (place, place + 1, place + 2);
        weights[0] * self.line[at]
            + weights[1] * (self.line[before] + self.line[behind] + self.faces[at])
            + weights[2] * (self.edges[at] + self.faces[before] + self.faces[behind])
            + weights[3] * (self.edges[before] + self.edges[behind])
    }
}

/// A line of `n` numbers with its last one before it and its first one behind it.
#[inline(always)]
fn ring(n: usize, number: impl Fn(usize) -> f64) -> [f64; EDGE + 2] {
    let mut line = [0.0; EDGE + 2];
    for (place, element) in line[1..=n].iter_mut().enumerate() {
        *element = number(place);
    }
    (line[0], line[n + 1]) = (line[n], line[1]);
    line
}
