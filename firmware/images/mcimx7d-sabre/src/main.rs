//! The target-independent suite on the Cortex-A7 cores of an i.MX7 SABRE board.
#![no_std]
#![no_main]

use musubi_metal::board::mcimx7d_sabre::Mcimx7dSabre;

suite::suite!(Mcimx7dSabre);
