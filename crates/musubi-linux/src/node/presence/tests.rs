//! What a token of the event loop says.

use super::*;

#[test]
fn a_token_names_what_it_was_made_of_whatever_stands_above_it() {
    let numbers = [0, 1, 2, 1 << 31, u32::MAX];
    let sources = numbers.into_iter().flat_map(|number| [Source::Socket(number), Source::Bell(number)]);
    for source in sources.chain([Source::Listener]) {
        for above in [0, 1 << 56, 0xff << 56] {
            assert_eq!(Source::of(source.token() | above), Some(source));
        }
    }
    for unknown in [3, 4, 0x10, 0xff] {
        assert_eq!(Source::of(unknown << 32), None);
    }
}
