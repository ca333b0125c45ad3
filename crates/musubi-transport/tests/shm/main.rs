//! Links by shared memory between nodes of threads and of processes.

mod actor;
mod driver;
mod figures;
mod hostile;
mod processes;
mod rendezvous;
mod threads;
