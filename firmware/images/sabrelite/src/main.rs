//! The target-independent suite on the Cortex-A9 cores of a SABRE Lite.
#![no_std]
#![no_main]

use musubi_metal::board::sabrelite::Sabrelite;

suite::suite!(Sabrelite);
