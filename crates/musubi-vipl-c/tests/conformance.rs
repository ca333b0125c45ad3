//! Programs in C that know include/vipl.h and nothing else, written from the standard's text: between VIs of one NIC, over
//! shared memory and over TCP, without a change to them.
//!
//! How it works: each is compiled in both spellings of descriptors and has its checks in it; docs/vipl-conformance.md is made of
//! what they check.

mod programs;

use programs::{Way, command, compile, description, run, succeed};

macro_rules! conformance {
    ($($folder:ident: $($name:ident)*;)*) => {$($(
        mod $name {
            const SOURCE: &str = concat!("conformance/", stringify!($folder), "/", stringify!($name));

            #[test]
            fn of_one_nic() {
                super::run(SOURCE, super::Way::Local);
            }

            #[test]
            fn over_shared_memory() {
                super::run(SOURCE, super::Way::SharedMemory);
            }

            #[test]
            fn over_tcp() {
                super::run(SOURCE, super::Way::Tcp);
            }

            #[test]
            fn in_the_other_spelling() {
                super::run_in_the_other_spelling(SOURCE, stringify!($name));
            }
        }
    )*)*};
}

conformance! {
    calls: closing errors handles header limits memory names nic opening waiting;
    connections: accept connect ends killed last_word many peers states stopped;
    data: completions format large messages notify protection quality rdma reliability stress;
    period: armci iometer madeleine;
}

/// With `Control` and `Data` instead of `CS` and `DS`.
fn run_in_the_other_spelling(source: &str, name: &str) {
    let options = ["-D_GNU_SOURCE", "-DSPELLING_DATA"];
    let program = compile(source, &format!("{name}-data"), ("cc", "c11"), &options);
    let way = Way::SharedMemory;
    succeed(command(&program, way.names(), Some(&description(way))).spawn().unwrap());
}

/// Compilers and standards, and what the oldest ones have to be told besides: they know no `long long`.
const STANDARDS: [(&str, &str, &[&str]); 9] = [
    ("cc", "c89", &["-Wno-long-long"]),
    ("cc", "gnu89", &[]),
    ("cc", "c99", &[]),
    ("cc", "c11", &[]),
    ("cc", "c17", &[]),
    ("c++", "c++98", &["-Wno-long-long"]),
    ("c++", "c++11", &[]),
    ("c++", "c++17", &[]),
    ("c++", "c++20", &[]),
];

#[test]
fn the_header_compiles_in_every_standard_without_a_warning() {
    for (compiler, standard, options) in STANDARDS {
        let name = format!("header-{standard}");
        let program = compile("conformance/calls/header", &name, (compiler, standard), options);
        succeed(command(&program, "", None).spawn().unwrap());
    }
}
