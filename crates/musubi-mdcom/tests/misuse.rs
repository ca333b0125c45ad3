//! What the C interface answers with a code does not compile in Rust, nor does a store into words of a peer. Each file of
//! tests/ui is one mistake.
#![forbid(unsafe_code)]

#[test]
#[cfg_attr(miri, ignore = "starts the compiler")]
fn misuse_does_not_compile() {
    let tests = trybuild::TestCases::new();
    tests.pass("tests/ui/right*.rs");
    tests.compile_fail("tests/ui/wrong_*.rs");
}
