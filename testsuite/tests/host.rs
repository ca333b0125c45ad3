//! The suite over processes on Linux: both participants in this one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use musubi_core::plan::{Domain, Plan, PortKind};
use musubi_linux::{Options, Participant};
use musubi_testsuite::{Failure, Pair, Wrapper, plan, run};

static DOMAINS: [Domain<'static>; 2] = plan::domains(PortKind::LinuxProcess);
static PLAN: Plan<'static> = plan::plan(&DOMAINS);

/// Linux as a target of the suite.
#[derive(Default)]
struct Host(AtomicU32);

impl Wrapper for Host {
    type Attachment = Participant;

    fn fresh(&mut self) -> Pair<Participant> {
        let instance = format!("suite-{}-{}", std::process::id(), self.0.fetch_add(1, Ordering::Relaxed));
        let attach = |domain| {
            Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(&PLAN, domain) }).unwrap()
        };
        Pair { master: attach(plan::MASTER), remote: attach(plan::REMOTE) }
    }

    fn pause(&mut self) {
        std::thread::sleep(Duration::from_micros(50));
    }

    fn report(&mut self, name: &str, result: Result<(), Failure>) {
        match result {
            Ok(()) => println!("{name}: ok"),
            Err(failure) => println!("{name}: FAILED: {failure}"),
        }
    }
}

#[test]
fn the_suite_passes_on_linux() {
    let outcome = run(&mut Host::default());
    println!("{outcome}");
    assert!(outcome.failed == 0 && outcome.passed > 0, "{outcome}");
}
