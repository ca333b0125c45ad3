//! The C interface, called by C functions in tasks; the other participant is this task, in Rust.

use core::ffi::c_int;
use core::fmt;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use musubi::mdcom::metal::{Ends, Inside, Node, install};
use musubi::mdcom::status::Status;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd};
use musubi_freertos::{Task, task};
use musubi_testsuite::plan;

use crate::attached::{Member, PLAN};
use crate::report::Report;
use crate::{PRIORITY, Place};

unsafe extern "C" {
    safe fn tests_before_init() -> c_int;
    safe fn tests_init() -> c_int;
    safe fn tests_echo() -> c_int;
    safe fn tests_misuse() -> c_int;
    safe fn tests_shared_memory() -> c_int;
    safe fn tests_take_one() -> c_int;
    safe fn tests_wait_for_the_end() -> c_int;
    safe fn tests_term() -> c_int;
}

/// Messages that the C task sends back (`MESSAGES` in c/calls.c).
const MESSAGES: u32 = 100;
/// How long a test waits for anything, in nanoseconds.
const PATIENCE_NS: u64 = 5_000_000_000;
/// A test in C that has not ended.
const RUNS: c_int = -1;

static ENDS: Ends<Member, 10, 1> = Ends::new(&PLAN);
static PLACE: AtomicPtr<Place> = AtomicPtr::new(core::ptr::null_mut());

/// Attaches the Remote for the C tasks: for [`musubi_freertos::CTasks`] of an image.
pub fn attach(inside: Inside<'_>) -> Result<&'static dyn Node, Status> {
    // SAFETY: `run` stores a static's address before any C task runs.
    let place: &'static Place = unsafe { PLACE.load(Ordering::SeqCst).as_ref() }.ok_or(Status::Internal)?;
    ENDS.put(inside, Member::attach(place, plan::REMOTE)?)?;
    Ok(&ENDS)
}

/// A task that runs a test in C.
struct InC {
    memory: Task<8192>,
    test: extern "C" fn() -> c_int,
    line: AtomicI32,
}

impl InC {
    const fn new(test: extern "C" fn() -> c_int) -> InC {
        InC { memory: Task::new(), test, line: AtomicI32::new(RUNS) }
    }

    fn start(&'static self) {
        self.memory.spawn(c"C", PRIORITY + 1, |this: &InC| this.line.store((this.test)(), Ordering::SeqCst), self);
    }

    fn result(&self, now_ns: impl Fn() -> u64) -> Result<(), Line> {
        let end_ns = now_ns() + 2 * PATIENCE_NS;
        while self.line.load(Ordering::SeqCst) == RUNS {
            if now_ns() > end_ns {
                return Err(Line(0));
            }
            task::delay(1);
        }
        match self.line.load(Ordering::SeqCst) {
            0 => Ok(()),
            line => Err(Line(line)),
        }
    }
}

/// Where a test in C failed; 0: it does not end.
struct Line(c_int);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("does not end"),
            line => write!(f, "c/calls.c:{line}"),
        }
    }
}

/// Runs the tests.
pub fn run(place: &'static Place, report: &mut Report) {
    PLACE.store(core::ptr::from_ref(place).cast_mut(), Ordering::SeqCst);
    install(&place.c_tasks);
    match Member::attach(place, plan::MASTER) {
        Ok(master) => run_tests(&master, report),
        Err(error) => report.result("c_tasks::the_master_attaches", Err(error)),
    }
}

fn run_tests(master: &Member, report: &mut Report) {
    static BEFORE: InC = InC::new(tests_before_init);
    static INIT: InC = InC::new(tests_init);
    static MISUSE: InC = InC::new(tests_misuse);
    static SHARED: InC = InC::new(tests_shared_memory);
    static TAKERS: [InC; 2] = [InC::new(tests_take_one), InC::new(tests_take_one)];
    static WAITER: InC = InC::new(tests_wait_for_the_end);
    static TERM: InC = InC::new(tests_term);
    let mut alone = |name: &str, test: &'static InC| {
        test.start();
        report.result(name, test.result(|| master.now_ns()));
    };
    alone("c_tasks::nothing_works_before_init", &BEFORE);
    alone("c_tasks::init_attaches", &INIT);
    report.result("c_tasks::an_echo_in_c", echo(master));
    let mut alone = |name: &str, test: &'static InC| {
        test.start();
        report.result(name, test.result(|| master.now_ns()));
    };
    alone("c_tasks::misuse_is_answered", &MISUSE);
    alone("c_tasks::memory_is_shared", &SHARED);
    report.result("c_tasks::what_c_wrote_is_there", wrote(master));
    TAKERS.iter().for_each(InC::start);
    report.result("c_tasks::two_tasks_at_one_channel_get_messages", feed(master, 2));
    for taker in &TAKERS {
        report.result("c_tasks::each_of_two_takes_one", taker.result(|| master.now_ns()));
    }
    WAITER.start();
    task::delay(5);
    TERM.start();
    report.result("c_tasks::who_waits_is_told_of_the_end", WAITER.result(|| master.now_ns()));
    report.result("c_tasks::the_end_is_told_once", TERM.result(|| master.now_ns()));
}

/// Sends so many messages on [`plan::DOWN`].
fn feed(master: &Member, messages: u32) -> Result<(), &'static str> {
    let end = master.open_sending(plan::DOWN).map_err(|_| "the sending end opens")?;
    (0..messages).try_for_each(|number| send(master, &end, number))
}

fn send(master: &Member, end: &impl SendingEnd, number: u32) -> Result<(), &'static str> {
    let mut loan = end.allocate(Deadline::At(master.now_ns() + PATIENCE_NS)).map_err(|_| "a block is free in time")?;
    loan[..4].copy_from_slice(&number.to_le_bytes());
    end.enqueue(loan, 4).map_err(|_| "the block is enqueued")?;
    let _ = end.notify();
    Ok(())
}

/// The C task sends back what this one sends, in order.
fn echo(master: &Member) -> Result<(), &'static str> {
    static ECHO: InC = InC::new(tests_echo);
    ECHO.start();
    let down = master.open_sending(plan::DOWN).map_err(|_| "the sending end opens")?;
    let up = master.open_receiving(plan::UP).map_err(|_| "the receiving end opens")?;
    for number in 0..MESSAGES {
        send(master, &down, number)?;
        let message = loop {
            match up.dequeue() {
                Err(musubi_core::Error::Empty) => {
                    let deadline = Deadline::At(master.now_ns() + PATIENCE_NS);
                    up.wait(deadline).map_err(|_| "the echo comes in time")?;
                }
                done => break done.map_err(|_| "the echo is a message")?,
            }
        };
        let mut bytes = [0; 4];
        let is_echo = message.copy_to(0, &mut bytes) == 4 && bytes == number.to_le_bytes();
        up.free(message).map_err(|_| "the message goes back")?;
        if !is_echo {
            return Err("the echo is what was sent");
        }
    }
    ECHO.result(|| master.now_ns()).map_err(|_| "the C task has seen nothing wrong")
}

/// The byte that the C task wrote under the lock.
fn wrote(master: &Member) -> Result<(), &'static str> {
    use musubi_core::channel::SharedSegment;
    let deadline = Deadline::At(master.now_ns() + PATIENCE_NS);
    let segment = master.open_segment(plan::SHARED, deadline).map_err(|_| "the memory opens")?;
    segment.lock(deadline).map_err(|_| "the lock is free")?;
    let mut byte = [0];
    segment.read(5, &mut byte).map_err(|_| "the byte can be read")?;
    segment.unlock().map_err(|_| "the lock is held")?;
    if byte == [42] { Ok(()) } else { Err("the byte is the one that C wrote") }
}
