//! What `musubi check` prints, whole, is what tests/reports holds.
//!
//! After a wanted change run this test alone with `MUSUBI_BLESS=1` to write them again, and look at the difference.

use std::path::Path;

use musubi_config::{check, parse};

const EXAMPLES: [(&str, &str); 3] = [
    ("board", include_str!("board.toml")),
    ("system", include_str!("../../../examples/system.toml")),
    ("nodes", include_str!("../../../examples/nodes.toml")),
];

#[test]
fn reports_are_as_committed() {
    for (name, text) in EXAMPLES {
        let description = parse(name, text).unwrap_or_else(|report| panic!("{report}"));
        for (form, width) in [("wide", None), ("80", Some(80))] {
            let new = check(&description, width);
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/reports/{name}-{form}.txt"));
            if std::env::var_os("MUSUBI_BLESS").is_some() {
                std::fs::write(&path, &new).expect("the committed file can be written");
            }
            let old = std::fs::read_to_string(&path).expect("a committed file");
            assert!(new == old, "{} changed; see the top of this file:\n{new}", path.display());
        }
    }
}
