//! CG, "conjugate gradient": the smallest eigenvalue of a large, sparse, random matrix, by inverse iteration.
//!
//! How it works: the matrix is a weighted sum of products of random sparse vectors with themselves, shifted. Each of 15
//! steps solves with it by 25 steps of the conjugate gradient method, not preconditioned. A worker has a share of the
//! rows; vectors are whole everywhere. So a step of the method costs two meetings: one for the product of direction and
//! image, one for the rest's square, with which each worker shows its rows of the rest.
//!
//! Where it comes from: section 2.2.3 of RNR-94-007; size and value of class S from NPB 2.

use core::ops::Range;

use super::random::Random;
use super::reals::{self, Reader};
use super::{Lost, Team, WORKERS_MAX, others, share};

/// Rows of class S.
const ROWS: usize = 1400;
/// Random elements of a vector that the matrix is made of; one more is set.
const PICKED: usize = 7;
const STEPS: u32 = 15;
const SOLVER_STEPS: u32 = 25;
const SHIFT: f64 = 10.0;
/// Condition: the weights fall from 1 to this, which is added to the diagonal, too.
const CONDITION: f64 = 0.1;
const SEED: u64 = 314_159_265;
/// Published value of class S.
const ZETA: f64 = 8.597_177_507_864_8;
const TOLERANCE: f64 = 1e-10;
/// Elements of the matrix at most: each vector's with each of the same.
const ELEMENTS: usize = ROWS * (PICKED + 1) * (PICKED + 1);
/// Words of a message: a sum and the rows of one worker.
const MESSAGE_WORDS: usize = 2 * (1 + ROWS);

/// A worker's memory.
#[derive(Debug)]
pub struct Workspace {
    /// Where the elements of each row begin, and behind the last, where they end. Rows that are others' have none.
    begins: [u32; ROWS + 1],
    columns: [u16; ELEMENTS],
    elements: [f64; ELEMENTS],
    vectors: Vectors,
    message: [u32; MESSAGE_WORDS],
}

/// The method's vectors.
#[derive(Debug)]
struct Vectors {
    /// Approximate eigenvector.
    x: [f64; ROWS],
    /// Solution.
    z: [f64; ROWS],
    /// Direction.
    p: [f64; ROWS],
    /// Image of the direction, or of the solution.
    q: [f64; ROWS],
    /// Rest.
    r: [f64; ROWS],
}

impl Workspace {
    /// Memory of which nothing was used.
    #[allow(clippy::new_without_default, reason = "it is a static, or large")]
    pub const fn new() -> Self {
        let vectors = Vectors { x: [0.0; ROWS], z: [0.0; ROWS], p: [0.0; ROWS], q: [0.0; ROWS], r: [0.0; ROWS] };
        let (columns, elements) = ([0; ELEMENTS], [0.0; ELEMENTS]);
        Self { begins: [0; ROWS + 1], columns, elements, vectors, message: [0; MESSAGE_WORDS] }
    }
}

/// What CG found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Shifted inverse of the eigenvalue.
    pub zeta: f64,
    /// What the last solution misses.
    pub rest: f64,
}

impl Outcome {
    /// Whether it is the published value of class S.
    pub fn is_right(&self) -> bool {
        ((self.zeta - ZETA) / ZETA).abs() <= TOLERANCE
    }
}

/// A sparse vector: places, all different, and values.
struct Sparse {
    places: [usize; PICKED + 1],
    values: [f64; PICKED + 1],
    count: usize,
}

impl Sparse {
    /// The vector of row `row`: so many random elements at random places, and a half at its own.
    fn make(random: &mut Random, row: usize) -> Self {
        let mut sparse = Self { places: [0; PICKED + 1], values: [0.0; PICKED + 1], count: 0 };
        while sparse.count < PICKED {
            let value = random.next();
            let place = (random.next() * ROWS.next_power_of_two() as f64) as usize;
            if place < ROWS && !sparse.places[..sparse.count].contains(&place) {
                sparse.set(place, value);
            }
        }
        sparse.set(row, 0.5);
        sparse
    }

    fn set(&mut self, place: usize, value: f64) {
        let index = self.places[..self.count].iter().position(|known| *known == place).unwrap_or(self.count);
        self.count = self.count.max(index + 1);
        (self.places[index], self.values[index]) = (place, value);
    }

    fn elements(&self) -> impl Iterator<Item = (usize, f64)> + Clone + '_ {
        self.places.iter().copied().zip(self.values).take(self.count)
    }
}

/// Gives every vector the matrix is made of, with its row and weight.
fn vectors(mut each: impl FnMut(usize, f64, &Sparse)) {
    // The benchmark draws one number before it makes the matrix.
    let mut random = Random::new(SEED, 1);
    let ratio = libm::pow(CONDITION, 1.0 / ROWS as f64);
    let mut weight = 1.0;
    for row in 0..ROWS {
        each(row, weight, &Sparse::make(&mut random, row));
        weight *= ratio;
    }
}

/// Makes a worker's rows of the matrix; not part of what is timed.
pub fn prepare(team: &impl Team, space: &mut Workspace) {
    let own = rows(team, team.rank());
    let mut counts = [0u32; ROWS];
    vectors(|_, _, sparse| {
        sparse.elements().filter(|(row, _)| own.contains(row)).for_each(|(row, _)| counts[row] += sparse.count as u32);
    });
    let mut begin = 0;
    for (place, count) in space.begins.iter_mut().zip(counts.iter().chain(&[0])) {
        *place = begin;
        begin += count;
    }
    let mut filled = [0u32; ROWS];
    vectors(|row, weight, sparse| {
        for (i, left) in sparse.elements().filter(|(i, _)| own.contains(i)) {
            for (j, right) in sparse.elements() {
                let diagonal = if i == row && j == row { CONDITION - SHIFT } else { 0.0 };
                space.add(i, &mut filled[i], j, left * right * weight + diagonal);
            }
        }
    });
    space.close_up(&filled);
}

impl Workspace {
    /// Adds to an element of a row in which so many places are filled.
    fn add(&mut self, row: usize, filled: &mut u32, column: usize, value: f64) {
        let begin = self.begins[row] as usize;
        let columns = &mut self.columns[begin..][..*filled as usize + 1];
        let known = columns[..*filled as usize].iter().position(|known| usize::from(*known) == column);
        let index = known.unwrap_or(*filled as usize);
        if known.is_none() {
            columns[index] = column as u16;
            self.elements[begin + index] = 0.0;
            *filled += 1;
        }
        self.elements[begin + index] += value;
    }

    /// Moves the rows together, so that nothing lies between them.
    fn close_up(&mut self, filled: &[u32; ROWS]) {
        let mut end = 0;
        for (row, count) in filled.iter().enumerate() {
            let (from, count) = (self.begins[row] as usize, *count as usize);
            self.columns.copy_within(from..from + count, end);
            self.elements.copy_within(from..from + count, end);
            self.begins[row] = end as u32;
            end += count;
        }
        self.begins[ROWS] = end as u32;
    }
}

/// Runs CG; every worker gets the same outcome. [`prepare`] comes first.
///
/// # Errors
/// [`Lost`].
pub fn run(team: &mut impl Team, space: &mut Workspace) -> Result<Outcome, Lost> {
    let own = rows(team, team.rank());
    let mut outcome = Outcome { zeta: 0.0, rest: 0.0 };
    space.vectors.x.fill(1.0);
    for _ in 0..STEPS {
        outcome.rest = solve(team, space, own.clone())?;
        let Vectors { x, z, .. } = &mut space.vectors;
        // Both vectors are whole everywhere, so each worker computes these for itself.
        outcome.zeta = SHIFT + 1.0 / dot(x, z);
        let scale = 1.0 / libm::sqrt(dot(z, z));
        x.iter_mut().zip(z.iter()).for_each(|(x, z)| *x = scale * z);
    }
    Ok(outcome)
}

/// Solves A z = x; gives the norm of what is left.
fn solve(team: &mut impl Team, space: &mut Workspace, own: Range<usize>) -> Result<f64, Lost> {
    let Workspace { begins, columns, elements, vectors, message } = space;
    let matrix = Matrix { begins, columns, elements };
    let Vectors { x, z, p, q, r } = vectors;
    z.fill(0.0);
    *r = *x;
    *p = *x;
    let mut square = dot(r, r);
    for _ in 0..SOLVER_STEPS {
        matrix.times(p, q, own.clone());
        let step = square / reals::sum(team, dot(&p[own.clone()], &q[own.clone()]))?;
        z.iter_mut().zip(p.iter()).for_each(|(z, p)| *z += step * p);
        r[own.clone()].iter_mut().zip(&q[own.clone()]).for_each(|(r, q)| *r -= step * q);
        let next = show_rows(team, r, own.clone(), message)?;
        let turn = next / square;
        square = next;
        p.iter_mut().zip(r.iter()).for_each(|(p, r)| *p = r + turn * *p);
    }
    matrix.times(z, q, own.clone());
    let missed = x[own.clone()].iter().zip(&q[own]).map(|(x, q)| (x - q) * (x - q)).sum();
    Ok(libm::sqrt(reals::sum(team, missed)?))
}

/// Completes a vector of which each worker has its rows; gives its square, the same for all.
fn show_rows(
    team: &mut impl Team,
    vector: &mut [f64; ROWS],
    own: Range<usize>,
    message: &mut [u32; MESSAGE_WORDS],
) -> Result<f64, Lost> {
    let square = dot(&vector[own.clone()], &vector[own.clone()]);
    let mut squares = [0.0; WORKERS_MAX];
    squares[team.rank()] = square;
    let words = reals::write([square].into_iter().chain(vector[own].iter().copied()), message);
    for other in others(team).into_iter().take(team.size() - 1) {
        let theirs = &mut vector[rows(team, other)];
        let mut reader = Reader::default();
        team.swap(other, words, &mut |piece| {
            reader.read(piece, |place, number| match place.checked_sub(1) {
                None => squares[other] = number,
                Some(row) => theirs.iter_mut().skip(row).take(1).for_each(|element| *element = number),
            });
        })?;
    }
    Ok(squares[..team.size()].iter().sum())
}

/// Rows of a worker.
fn rows(team: &impl Team, worker: usize) -> Range<usize> {
    let (first, end) = share(worker, team.size(), ROWS);
    first..end
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Rows of the matrix, one after the other.
struct Matrix<'w> {
    begins: &'w [u32; ROWS + 1],
    columns: &'w [u16; ELEMENTS],
    elements: &'w [f64; ELEMENTS],
}

impl Matrix<'_> {
    fn times(&self, vector: &[f64; ROWS], product: &mut [f64; ROWS], rows: Range<usize>) {
        for (element, row) in product[rows.clone()].iter_mut().zip(rows) {
            let places = self.begins[row] as usize..self.begins[row + 1] as usize;
            let row = self.columns[places.clone()].iter().zip(&self.elements[places]);
            *element = row.map(|(column, element)| element * vector[usize::from(*column)]).sum();
        }
    }
}
