//! The target-independent suite on the Cortex-A53 cores of a ZCU102.
#![no_std]
#![no_main]

use musubi_metal::board::zcu102_a53::Zcu102A53;

suite::suite!(Zcu102A53);
