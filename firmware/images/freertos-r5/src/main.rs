//! FreeRTOS on the first Cortex-R5F of a ZCU102.
//!
//! How it works: `zcu102-psci` on a Cortex-A53 starts the core and switches the machine off. Whether there are interrupts
//! is found when the board prepares itself; without, the idle task polls.
#![no_std]
#![no_main]

use freertos_tests::{PLAN, Place, attach_remote, run};
use musubi_core::mapped::Memory;
use musubi_freertos::{CTasks, OnBoard, Task, TaskHost};
use musubi_metal::board::Board;
use musubi_metal::board::zcu102_r5::Zcu102R5;
use musubi_metal::{image, println};

image! { Cpu: Zcu102R5, 1, main }

/// Memory of the participants, which no cache of this core holds.
const SHARED: *mut u8 = 0x3F00_0000 as *mut u8;

static MACHINE: OnBoard<Zcu102R5> = OnBoard::new();
static PLACE: Place = Place {
    board: TaskHost { machine: &MACHINE, has_common_clock: true, ring },
    memory,
    c_tasks: CTasks { machine: &MACHINE, attach: attach_remote },
    print: |line| println!(Cpu, "{line}"),
    more: &[],
};
static MAIN: Task<{ freertos_tests::STACK_BYTES }> = Task::new();

/// Both participants are on this core.
fn ring(_participant: u16) {
    Zcu102R5::ring(0);
}

fn memory(participant: u16) -> Memory<'static> {
    // SAFETY: the board sets this memory aside, nothing else uses it, and the tests attach each participant once at a time.
    let memory = unsafe { Memory::whole(SHARED, &PLAN, participant) };
    memory.expect("the plan has these participants")
}

fn main() -> ! {
    MAIN.spawn(c"main", freertos_tests::PRIORITY, all, &());
    MACHINE.start()
}

fn all(_: &()) {
    println!(Cpu, "interrupts: {}", MACHINE.is_interrupted());
    run(&PLACE);
    Zcu102R5::power_off()
}
