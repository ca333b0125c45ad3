//! Which figures are wanted: what `--only` says.
//!
//! How it works: patterns with commas between them. One with `*` or `?` is for the whole name, any other for a part of it.

/// Whether a figure of this name is wanted; nothing said wants all.
pub(super) fn wants(only: &str, name: &str) -> bool {
    only.is_empty() || only.split(',').any(|pattern| matches(pattern.trim(), name))
}

fn matches(pattern: &str, name: &str) -> bool {
    if pattern.contains(['*', '?']) { is_like(pattern.as_bytes(), name.as_bytes()) } else { name.contains(pattern) }
}

/// Whether the whole name is like the pattern; goes back to the last star only, so it ends soon for all patterns.
fn is_like(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut of, mut star) = (0, 0, None);
    while of < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, of));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[of] => (at, of) = (at + 1, of + 1),
            _ => {
                let Some((before, begun)) = star else { return false };
                star = Some((before, begun + 1));
                (at, of) = (before + 1, begun + 1);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::wants;

    #[test]
    fn patterns_are_for_whole_names_and_texts_for_parts() {
        for only in ["", "shm_poll", "*", "msg_*_1", "msg_oneway_shm_poll_?", "pkt, *poll*", "*_1*"] {
            assert!(wants(only, "msg_oneway_shm_poll_1"), "{only}");
        }
        for only in ["tcp", "msg_*_1", "*_1", "shm*", "?", "msg_oneway_shm_poll_1?", "scl,pkt*"] {
            assert!(!wants(only, "msg_oneway_shm_poll_64"), "{only}");
        }
    }
}
