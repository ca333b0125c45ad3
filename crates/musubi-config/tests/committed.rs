//! The files in tests/generated are what tests/board.toml gives.
//!
//! After a wanted change, of the layout too, run this test alone with `MUSUBI_BLESS=1` to write them again, and look at
//! the difference. It is a file of its own because tests/generated.rs does not compile with files of another layout.

use std::path::Path;

#[test]
fn files_are_as_committed() {
    let description =
        musubi_config::parse("board.toml", include_str!("board.toml")).unwrap_or_else(|report| panic!("{report}"));
    let directory = tempfile::tempdir().expect("a directory for the test");
    for path in musubi_config::generate(&description, directory.path()).expect("files can be written") {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generated").join(&name);
        let new = std::fs::read_to_string(&path).expect("just written");
        if std::env::var_os("MUSUBI_BLESS").is_some() {
            std::fs::write(&committed, &new).expect("the committed file can be written");
        }
        let old = std::fs::read_to_string(&committed).expect("a committed file");
        assert!(new == old, "{name} changed; see the top of this file");
        let (high, low) = (description.hash() >> 32, description.hash() & u64::from(u32::MAX));
        let hash_forms = [format!("{:016x}", description.hash()), format!("{high:#x} {low:#x}")];
        assert!(hash_forms.iter().any(|hash| new.contains(hash)), "{name} does not carry the hash");
    }
}
