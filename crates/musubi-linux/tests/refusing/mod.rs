//! A filter of the kernel (seccomp) that refuses one system call of this thread and of those that it starts, or of all.
#![allow(dead_code, reason = "each test binary uses a part")]

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog};

/// Lets the call with this number fail with this error from now on.
pub fn refuse(call: u32, errno: u32) {
    install(call, errno, 0);
}

/// The same for all threads of this process.
pub fn refuse_all(call: u32, errno: u32) {
    install(call, errno, libc::SECCOMP_FILTER_FLAG_TSYNC);
}

fn install(call: u32, errno: u32, flags: libc::c_ulong) {
    let step = |code: u32, jf: u8, k: u32| sock_filter { code: code as u16, jt: 0, jf, k };
    let mut program = [
        // The number of the call is the first word of what the filter sees.
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, 1, call),
        step(BPF_RET | BPF_K, 0, libc::SECCOMP_RET_ERRNO | errno),
        step(BPF_RET | BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: sets a flag of this thread.
    let first = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the kernel copies the program, which lives as long as the call.
    let second = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter) };
    assert_eq!((first, second), (0, 0), "{}", std::io::Error::last_os_error());
}
