//! Tests that every port must pass.
#![no_std]
#![forbid(unsafe_code)]
