//! What only benchmarks and tests use: pages without a protocol, and cores made of threads.

pub mod bare;
pub mod cores;
