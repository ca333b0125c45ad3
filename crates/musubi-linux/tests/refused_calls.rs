//! Kernels and filters that refuse a system call: either everything works, or the start fails and names the call; and
//! nothing spins.

mod actor;
mod system;

use std::time::{Duration, Instant};

use actor::Actor;
use musubi_linux::DeadlineExt;
use system::*;

#[test]
fn actor() {
    actor::play();
}

/// Calls that are made, by number, and what the error of the start says if one cannot do without.
const CALLS: [(&str, libc::c_long); 27] = [
    ("accept4", libc::SYS_accept4),
    ("bind", libc::SYS_bind),
    ("clock_nanosleep", libc::SYS_clock_nanosleep),
    ("connect", libc::SYS_connect),
    ("epoll_create1", libc::SYS_epoll_create1),
    ("epoll_ctl", libc::SYS_epoll_ctl),
    ("epoll_pwait", libc::SYS_epoll_pwait),
    ("epoll_pwait2", libc::SYS_epoll_pwait2),
    ("eventfd2", libc::SYS_eventfd2),
    ("fallocate", libc::SYS_fallocate),
    ("fstatfs", libc::SYS_fstatfs),
    ("ftruncate", libc::SYS_ftruncate),
    ("futex_waitv", libc::SYS_futex_waitv),
    ("getsockopt", libc::SYS_getsockopt),
    ("listen", libc::SYS_listen),
    ("madvise", libc::SYS_madvise),
    ("membarrier", libc::SYS_membarrier),
    ("memfd_create", libc::SYS_memfd_create),
    ("pidfd_open", libc::SYS_pidfd_open),
    ("ppoll", libc::SYS_ppoll),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("recvmsg", libc::SYS_recvmsg),
    ("sendmsg", libc::SYS_sendmsg),
    ("shutdown", libc::SYS_shutdown),
    ("socketpair", libc::SYS_socketpair),
    ("timerfd_create", libc::SYS_timerfd_create),
    ("timerfd_settime", libc::SYS_timerfd_settime),
];
/// Those that have a substitute or are not needed: with one of them refused everything works.
const DISPENSABLE: [&str; 6] =
    ["epoll_pwait2", "futex_waitv", "membarrier", "pidfd_open", "process_vm_readv", "shutdown"];

#[test]
fn a_refused_call_is_done_without_or_named() {
    for (name, number) in CALLS {
        for errno in [libc::EPERM, libc::ENOSYS] {
            let instance = instance();
            let mut control = Actor::start();
            control.ask(&format!("refuse {number} {errno}"));
            let begin = Instant::now();
            let answer = control.ask(&format!("attach {CONTROL} {instance} plan 2000"));
            if DISPENSABLE.contains(&name) {
                assert!(answer.starts_with("attached"), "{name} refused with {errno}: {answer}");
                works(&mut control, &instance, &format!("{name} refused with {errno}"));
            } else {
                assert!(answer.starts_with("error") && answer.contains(name), "{name} refused with {errno}: {answer}");
            }
            assert!(begin.elapsed() < Duration::from_secs(5), "{name}: {:?}", begin.elapsed());
            let cpu_ms: u64 = control.ask("cpu").parse().unwrap();
            assert!(cpu_ms < 500, "{name} refused with {errno}: {cpu_ms} ms of processor time");
        }
    }
}

/// Links with another participant and sleeps, without using the processor.
fn works(control: &mut Actor, instance: &str, how: &str) {
    let mut gateway = Actor::start();
    gateway.attach(GATEWAY, instance);
    assert!(control.ask("wait 1 2000").starts_with('1'), "{how}");
    assert!(gateway.ask("wait 0 2000").starts_with('0'), "{how}");
    let sleeps: u32 = control.ask("nap 200").parse().unwrap();
    assert!(sleeps < 200, "{how}: woken {sleeps} times");
    // Its end is noticed.
    gateway.kill();
    let deadline = within(5_000);
    while control.ask("peers") != "[]" {
        assert!(!deadline.passed(), "{how}: the death was not noticed");
        std::thread::sleep(Duration::from_millis(5));
    }
}
