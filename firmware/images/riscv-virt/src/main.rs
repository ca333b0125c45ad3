//! The target-independent suite on QEMU's virt machine for RISC-V.
#![no_std]
#![no_main]

use musubi_metal::board::riscv_virt::RiscvVirt;

suite::suite!(RiscvVirt);
