//! Which crates' own tests are tried, and how they are run.

/// How a crate's tests are run.
pub struct Suite {
    /// The package.
    pub package: &'static str,
    /// What is built with it.
    pub features: &'static [&'static str],
    /// The tests inside it, then those beside it, as cargo's arguments.
    pub stages: &'static [&'static [&'static str]],
    /// Tests that are left out: long ones that try nothing else than shorter ones do.
    pub left_out: &'static [&'static str],
}

const INSIDE: &[&str] = &["--lib"];
const BESIDE: &[&str] = &["--test", "*"];

/// The crates whose own tests can notice what changes in them.
pub const SUITES: &[Suite] = &[
    Suite { package: "musubi-core", features: &["--features", "lock_api"], stages: &[INSIDE, BESIDE], left_out: &[] },
    Suite { package: "musubi-transport", features: &[], stages: &[INSIDE, BESIDE], left_out: &[] },
    Suite { package: "musubi-mcapi", features: &[], stages: &[INSIDE, BESIDE], left_out: &[] },
    Suite { package: "musubi-config", features: &[], stages: &[INSIDE, BESIDE], left_out: &[] },
    // What must not compile says nothing of how it works.
    Suite { package: "musubi-mdcom", features: &[], stages: &[BESIDE], left_out: &["misuse_does_not_compile"] },
    Suite { package: "musubi-linux", features: &[], stages: &[INSIDE, BESIDE], left_out: &[] },
];
