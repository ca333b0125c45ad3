//! The target-independent suite on the Cortex-A9 cores of a Versatile Express.
#![no_std]
#![no_main]

use musubi_metal::board::vexpress_a9::VexpressA9;

suite::suite!(VexpressA9);
