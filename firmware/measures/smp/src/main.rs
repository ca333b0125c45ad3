//! The list, built for two cores: on one core, then with the partner on the other.
#![no_std]
#![no_main]

measures::list_image!(2);
