//! A child's tie to the launcher: told to stop, or gone with it.
//!
//! What you may rely on: the child ends when the launcher ends, however that ends.
//!
//! How it works: the kernel is asked to kill the child when its parent dies; where that does not reach (the parent died
//! before it was asked), end of file on the standard input does.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// Exit status of a child whose launcher is gone.
const ABANDONED: i32 = 3;

/// What the launcher asks for, in one byte on the child's standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Request {
    /// Go on.
    GoOn = 0,
    /// End when the present work is done.
    Finish = 1,
    /// End now.
    Stop = 2,
}

/// The tie.
#[derive(Clone, Debug)]
pub struct Leash(Arc<AtomicU8>);

impl Leash {
    /// Ties this process to its parent, which must be `launcher`.
    pub fn new(launcher: u32) -> anyhow::Result<Leash> {
        set_parent_process_death_signal(Some(Signal::KILL)).context("asking to end with the launcher")?;
        let parent = getppid().map(Pid::as_raw_pid);
        ensure!(parent == i32::try_from(launcher).ok(), "`musubi demo` starts this process; it is not for use by hand");
        let leash = Leash(Arc::new(AtomicU8::new(Request::GoOn as u8)));
        let listening = leash.clone();
        std::thread::Builder::new().name("leash".to_owned()).spawn(move || listening.listen())?;
        Ok(leash)
    }

    fn listen(&self) {
        let mut byte = [0];
        while let Ok(1) = std::io::stdin().read(&mut byte) {
            self.0.fetch_max(byte[0], Ordering::Relaxed);
        }
        std::process::exit(ABANDONED);
    }

    /// What the launcher asks for, by now.
    pub fn request(&self) -> Request {
        match self.0.load(Ordering::Relaxed) {
            0 => Request::GoOn,
            1 => Request::Finish,
            _ => Request::Stop,
        }
    }
}
