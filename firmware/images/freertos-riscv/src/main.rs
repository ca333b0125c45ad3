//! FreeRTOS on hart 0 of QEMU's RISC-V `virt` machine in machine mode, a bare loop on hart 1.
//!
//! How it works: `qemu-system-riscv64 -M virt -smp 2 -bios none -kernel IMAGE`.
#![no_std]
#![no_main]

mod entry;
mod second;
mod virt;

use core::panic::PanicInfo;

use freertos_tests::{PLAN, Place, attach_remote, run};
use musubi_core::mapped::Memory;
use musubi_freertos::{CTasks, Task, TaskHost, start, trap};
use virt::println;

/// Memory of the participants: behind the image.
const SHARED: *mut u8 = 0x8200_0000 as *mut u8;

static PLACE: Place = Place {
    board: TaskHost { machine: &virt::Hart0, has_common_clock: true, ring: second::ring },
    memory,
    c_tasks: CTasks { machine: &virt::Hart0, attach: attach_remote },
    print: |line| println!("{line}"),
    more: &[("second::a_task_and_a_bare_loop_on_another_hart_wake_each_other", second::test)],
};
static MAIN: Task<{ freertos_tests::STACK_BYTES }> = Task::new();

fn memory(participant: u16) -> Memory<'static> {
    // SAFETY: the machine has this memory, nothing else uses it, and the tests attach each participant once at a time.
    let memory = unsafe { Memory::whole(SHARED, &PLAN, participant) };
    memory.expect("the plan has these participants")
}

/// Hart 0 begins here, with statics cleared and interrupts masked.
extern "C" fn boot_hart() -> ! {
    // SAFETY: the kernel's entry handles every trap of this hart from here on.
    unsafe { core::arch::asm!("csrw mtvec, {}", in(reg) trap::entry(), options(nomem, nostack)) };
    virt::enable_ring();
    MAIN.spawn(c"main", freertos_tests::PRIORITY, main, &());
    start(&virt::Hart0)
}

fn main(_: &()) {
    run(&PLACE);
    virt::power_off()
}

/// Hart 1 begins here when hart 0 has rung it.
extern "C" fn second_hart() -> ! {
    second::echo_for_ever()
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    println!("PANIC: {info}");
    virt::power_off()
}
