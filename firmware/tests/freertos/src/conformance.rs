//! The target-independent suite, both participants in one task.

use musubi_freertos::task;
use musubi_testsuite::{Failure, Pair, Wrapper, plan, run as run_suite};

use crate::Place;
use crate::attached::Member;
use crate::report::Report;

struct InTask<'r> {
    place: &'static Place,
    report: &'r mut Report,
}

impl Wrapper for InTask<'_> {
    type Attachment = Member;

    fn fresh(&mut self) -> Pair<Member> {
        let attach = |number| Member::attach(self.place, number).expect("a participant of this core attaches");
        Pair { master: attach(plan::MASTER), remote: attach(plan::REMOTE) }
    }

    fn pause(&mut self) {
        task::delay(1);
    }

    fn report(&mut self, name: &str, result: Result<(), Failure>) {
        self.report.result(name, result);
    }
}

/// Runs the suite's cases.
pub fn run(place: &'static Place, report: &mut Report) {
    run_suite(&mut InTask { place, report });
}
