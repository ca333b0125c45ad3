//! The target-independent suite on the Cortex-R5F cores of a ZCU102.
#![no_std]
#![no_main]

use musubi_metal::board::zcu102_r5::Zcu102R5;

suite::suite!(Zcu102R5);
