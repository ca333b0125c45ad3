//! The list, built for one core: its locks are a mask.
#![no_std]
#![no_main]

measures::list_image!(1);
