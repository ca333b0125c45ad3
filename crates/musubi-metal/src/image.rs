//! The frame of an image: the functions that the entry code and the vectors call, and the panic handler.

/// Makes the crate an image: `image! { pub Cpu: RiscvVirt, 8 cores, main }` defines `Cpu`, the [`Program`](crate::Program)
/// with that board and so many cores, the functions that the architecture's entry code calls, and a panic handler that
/// prints and ends the program. `main` is a `fn() -> !`; it runs on the boot core with interrupts unmasked.
///
/// With `serve: a, rung: b, idle: f` behind it, waiting loops evaluate `a` and the interrupt of a ring `b`, which pass both
/// on to an [`Interprocessor`](musubi_core::smp::interprocessor::Interprocessor) (`serve`, `on_interrupt`); and a secondary
/// core runs `f` once it has started, a `fn() -> !` that begins by joining it.
///
/// With `fault: f` behind it instead, `f` (cause, address, where) decides what becomes of the program after a fault.
#[macro_export]
macro_rules! image {
    ($vis:vis $name:ident: $board:ty, $cores:expr, $main:path) => {
        $crate::image! { @program $vis $name, $board, $cores, $crate::start::sleep, {
            fn serve() {}
        } }
        $crate::image! { @entries $name, $main, $crate::start::fault::<$name> }
    };
    ($vis:vis $name:ident: $board:ty, $cores:expr, $main:path, fault: $fault:path) => {
        $crate::image! { @program $vis $name, $board, $cores, $crate::start::sleep, {
            fn serve() {}
        } }
        $crate::image! { @entries $name, $main, $fault }
    };
    ($vis:vis $name:ident: $board:ty, $cores:expr, $main:path,
     serve: $serve:expr, rung: $rung:expr, idle: $idle:path) => {
        $crate::image! { @program $vis $name, $board, $cores, $idle, {
            #[inline]
            fn serve() {
                let () = $serve;
            }

            fn rung() {
                let () = $rung;
            }
        } }
        $crate::image! { @entries $name, $main, $crate::start::fault::<$name> }
    };
    (@program $vis:vis $name:ident, $board:ty, $cores:expr, $idle:path, { $($serving:item)* }) => {
        /// The cores and the board of this image.
        #[derive(Debug)]
        $vis struct $name;

        impl $crate::Program for $name {
            type Board = $board;
            const CORES: usize = $cores;

            $($serving)*

            fn idle() -> ! {
                $idle()
            }

            fn stack_top(core: usize) -> usize {
                static STACKS: $crate::start::Stacks<{ $cores - 1 }> = $crate::start::Stacks::new();
                STACKS.top(core)
            }
        }
    };
    (@entries $name:ident, $main:path, $fault:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn musubi_metal_boot(hardware: usize, _argument: usize) -> ! {
            $crate::start::boot::<$name>(hardware, $main)
        }

        #[unsafe(no_mangle)]
        extern "C" fn musubi_metal_secondary(core: &'static $crate::core_data::CoreData) -> ! {
            $crate::start::secondary::<$name>(core)
        }

        #[unsafe(no_mangle)]
        extern "C" fn musubi_metal_interrupt() {
            $crate::dispatch::handle::<$name>();
        }

        #[unsafe(no_mangle)]
        extern "C" fn musubi_metal_fault(cause: usize, address: usize, at: usize) -> ! {
            $fault(cause, address, at)
        }

        #[panic_handler]
        fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
            $crate::start::panicked::<$name>(info)
        }
    };
}
