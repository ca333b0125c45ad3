//! Signals belong to the program: background threads of ours take none.

/// Blocks every signal for the calling thread, so that the kernel gives them to the program's own threads.
pub fn leave_to_program() {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is valid for one signal set, which the call fills.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the set is filled; only this thread's mask changes.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut()) };
}
