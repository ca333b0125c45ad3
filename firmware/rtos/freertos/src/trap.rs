//! Where the machine's traps enter the kernel.
//!
//! What you may rely on: the kernel's own entries are used as they are; ours are what they call.

use crate::machine;

/// RISC-V: the address for `mtvec`. Exceptions that the kernel does not know end the program.
#[cfg(target_arch = "riscv64")]
pub fn entry() -> usize {
    unsafe extern "C" {
        fn freertos_risc_v_trap_handler();
    }
    freertos_risc_v_trap_handler as *const () as usize
}

#[cfg(target_arch = "riscv64")]
mod riscv {
    /// An interrupt other than the timer's.
    #[unsafe(no_mangle)]
    extern "C" fn freertos_risc_v_application_interrupt_handler(_cause: usize) {
        super::machine::interrupt();
    }

    /// An exception other than the kernel's own `ecall`.
    #[unsafe(no_mangle)]
    extern "C" fn freertos_risc_v_application_exception_handler(cause: usize, address: usize) -> ! {
        panic!("exception {cause} before {address:#x}")
    }
}

/// Cortex-R5F: makes the vectors at address 0 branch to the kernel for SVC and IRQ, and gives both modes a stack. The other
/// vectors stay as they are.
///
/// # Safety
/// Interrupts are masked, the core runs in supervisor or system mode, and address 0 holds eight instructions that load
/// the program counter from the eight words behind them, which may be written.
#[cfg(target_arch = "arm")]
pub unsafe fn install() {
    // SAFETY: the caller's promise.
    unsafe { arm::install() };
}

#[cfg(target_arch = "arm")]
mod arm {
    use core::arch::asm;
    use core::cell::UnsafeCell;

    /// Bytes of the stack of a mode.
    const STACK_BYTES: usize = 4096;

    #[repr(C, align(8))]
    struct Stack(UnsafeCell<[u8; STACK_BYTES]>);

    // SAFETY: only the core's own modes use it, through their stack pointers.
    unsafe impl Sync for Stack {}

    static IRQ_STACK: Stack = Stack(UnsafeCell::new([0; STACK_BYTES]));
    static SVC_STACK: Stack = Stack(UnsafeCell::new([0; STACK_BYTES]));

    unsafe extern "C" {
        fn FreeRTOS_SVC_Handler();
        fn FreeRTOS_IRQ_Handler();
    }

    /// # Safety
    /// As for [`super::install`].
    pub(super) unsafe fn install() {
        let top = |stack: &Stack| stack.0.get() as usize + STACK_BYTES;
        // SAFETY: banked registers of modes that do not run; a core in supervisor mode keeps its stack until the first task
        // runs, and handlers go on below what is in use.
        unsafe {
            asm!(
                "mrs {mode}, cpsr",
                "cps #0x12",
                "mov sp, {irq}",
                "and {t}, {mode}, #0x1f",
                "cmp {t}, #0x13",
                "beq 2f",
                "cps #0x13",
                "mov sp, {svc}",
                "2: msr cpsr_c, {mode}",
                mode = out(reg) _, t = out(reg) _, irq = in(reg) top(&IRQ_STACK), svc = in(reg) top(&SVC_STACK),
            );
        }
        let (svc, irq) = (FreeRTOS_SVC_Handler as *const () as usize, FreeRTOS_IRQ_Handler as *const () as usize);
        // SAFETY: the caller's promise. In assembly, since these are near address 0, which is no address to Rust.
        unsafe {
            asm!("str {svc}, [{words}, #8]", "str {irq}, [{words}, #24]", "dsb", "isb",
                svc = in(reg) svc, irq = in(reg) irq, words = in(reg) 0x20, options(nostack));
        }
    }

    /// Called by the kernel's interrupt entry, in supervisor mode with interrupts masked.
    #[unsafe(no_mangle)]
    extern "C" fn vApplicationIRQHandler() {
        // An exclusive load of the interrupted task must not make another's store succeed.
        // SAFETY: only clears the core's own monitor.
        unsafe { core::arch::asm!("clrex", options(nostack, preserves_flags)) };
        super::machine::interrupt();
    }

    /// Called by the kernel when the scheduler starts.
    #[unsafe(no_mangle)]
    extern "C" fn musubi_freertos_start_tick() {
        if let Some(machine) = super::machine::machine()
            && machine.has_interrupts()
        {
            machine.start_tick();
        }
    }
}
