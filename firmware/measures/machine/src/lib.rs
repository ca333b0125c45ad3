//! What images that measure have in common: the list's machine, a report, a team of workers.
//!
//! How it works: on one core instructions are counted (`rdinstret`, exact under QEMU's `-icount`); what spans two cores is
//! timed, on a machine without `-icount`.
#![no_std]

pub mod report;
pub mod team;

#[doc(hidden)]
pub use {musubi_core, musubi_measures, musubi_metal};

/// Makes the crate an image that runs the list on QEMU's virt machine for RISC-V, built for this many cores.
#[macro_export]
macro_rules! list_image {
    ($cores:literal) => {
        use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

        use $crate::musubi_core::smp::Handlers;
        use $crate::musubi_measures::{Machine as _, Shared};
        use $crate::musubi_metal::board::Board as _;
        use $crate::musubi_metal::board::riscv_virt::RiscvVirt;
        use $crate::musubi_metal::coroutine::Coroutines;
        use $crate::musubi_metal::{Machine, arch, image, start};

        image! { pub Cpu: RiscvVirt, $cores, main, serve: Cpu::shared().interprocessor.serve(),
        rung: rung(), idle: second }

        static SHARED: Shared<Machine<Cpu>, Quiet, $cores> = Shared::new();
        static TASKS: Coroutines = Coroutines::new();
        /// Interrupts taken. Writers: both cores' handlers.
        static RUNG: AtomicU32 = AtomicU32::new(0);
        /// Address of the function that core 1 is to run; 0 for none. Writers: core 0 sets it, core 1 clears it after.
        static JOB: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

        /// Whether nanoseconds are counted instead of instructions. Writer: core 0, before it starts core 1.
        static TIMED: AtomicBool = AtomicBool::new(false);

        /// Nothing to do for causes other than calls.
        pub struct Quiet;

        impl Handlers for Quiet {
            fn reschedule() {}
            fn tick() {}
            fn flush_instructions() {}
            fn flush_data() {}
            fn flush_translations() {}
            fn stop() {}
        }

        fn rung() {
            RUNG.fetch_add(1, Ordering::Relaxed);
            Cpu::shared().interprocessor.on_interrupt();
        }

        extern "C" fn task() -> ! {
            TASKS.enter()
        }

        impl $crate::musubi_measures::Machine<$cores> for Cpu {
            type Processor = Machine<Cpu>;
            type Handlers = Quiet;

            fn shared() -> &'static Shared<Machine<Cpu>, Quiet, $cores> {
                &SHARED
            }
            fn trap() {
                let _ = RiscvVirt::exists(0);
            }
            fn interrupt_self() {
                let before = RUNG.load(Ordering::Relaxed);
                RiscvVirt::ring($crate::musubi_metal::core_data::this_core().hardware());
                while RUNG.load(Ordering::Relaxed) == before {}
            }
            fn switch() {
                TASKS.switch();
            }
            fn count() -> u64 {
                if TIMED.load(Ordering::Relaxed) { RiscvVirt::now_ns() } else { arch::instructions() }
            }
            fn run(tasks: &[(usize, fn())]) {
                for (_, function) in tasks.iter().filter(|(core, _)| *core == 1) {
                    JOB.store(*function as *mut (), Ordering::Release);
                    RiscvVirt::ring($crate::musubi_metal::core_data::core(1).hardware());
                }
                let own = tasks.iter().filter(|(core, _)| *core == 0).map(|(_, function)| *function);
                // SAFETY: on core 0, in main.
                unsafe { TASKS.run(own, task) };
                while !JOB.load(Ordering::Acquire).is_null() {
                    core::hint::spin_loop();
                }
            }
        }

        /// Core 1: runs what it is given.
        fn second() -> ! {
            loop {
                let job = JOB.load(Ordering::Acquire);
                if job.is_null() {
                    arch::wait_for_interrupt();
                    arch::unmask();
                    let _ = arch::mask();
                    continue;
                }
                arch::unmask();
                // SAFETY: core 0 stored a function of this very type.
                let function = unsafe { core::mem::transmute::<*mut (), fn()>(job) };
                function();
                let _ = arch::mask();
                JOB.store(core::ptr::null_mut(), Ordering::Release);
            }
        }

        fn main() -> ! {
            // A machine that counts instructions runs its cores in turn, for long stretches: what spans cores is timed.
            let two = || {
                TIMED.store(true, Ordering::Relaxed);
                $cores > 1 && start::cores_present::<Cpu>() > 1 && start::start_core::<Cpu>(1).is_ok()
            };
            $crate::report::list::<Cpu, Cpu, $cores>(two);
            RiscvVirt::power_off()
        }
    };
}
