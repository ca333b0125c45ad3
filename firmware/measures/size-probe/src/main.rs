//! A minimal image: nothing but the parts of Musubi that its features name, each used once.
//!
//! What you may rely on: it is linked as an image is (unused sections collected, panics abort), so its sections are
//! what a program pays. The plan and all state come through [`core::hint::black_box`], so the compiler cannot leave out
//! checks that this one plan makes needless.
//!
//! What it does not do: run. It has no start-up code and no stack.
#![no_std]
#![no_main]

#[cfg(feature = "fifo")]
mod fifo;
#[cfg(any(feature = "lock-up", feature = "lock-smp", feature = "lock-inline", feature = "lock-clh"))]
mod locks;
#[cfg(feature = "smem")]
mod smem;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Uses each part of the image: `part` says which, `command` and `argument` what for.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.probe")]
extern "C" fn probe(part: u32, command: u32, argument: u32) -> u32 {
    match part {
        #[cfg(feature = "fifo")]
        0 => fifo::send(command, argument),
        #[cfg(feature = "fifo")]
        1 => fifo::receive(command, argument),
        #[cfg(feature = "smem")]
        2 => smem::lock(command, argument),
        #[cfg(any(feature = "lock-up", feature = "lock-smp", feature = "lock-inline", feature = "lock-clh"))]
        3 => locks::lock(command),
        _ => command ^ argument,
    }
}
