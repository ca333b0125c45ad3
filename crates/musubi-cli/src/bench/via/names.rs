//! The figures' names: what sizes they are of, and which limit each is compared with.

/// Sizes of messages whose latency is measured, in bytes: the seed's table 2, to the largest of one piece.
pub(super) const MESSAGES: [usize; 6] = [4, 64, 1024, 4096, 32_768, 65_536];
/// Sizes of what is streamed, in bytes.
pub(super) const STREAMS: [usize; 6] = [64, 1024, 4096, 32_768, 65_536, 1_048_576];
/// Size of the messages that are counted, in bytes.
pub(super) const COUNTED_BYTES: usize = 64;

/// The name of a result's limit.
pub(super) fn limit_of(name: &str) -> Option<String> {
    let rest = |prefix: &str| name.strip_prefix(prefix);
    if let Some(how_and_size) = rest("vi_oneway_tcp_") {
        return Some(format!("tcp_oneway_{how_and_size}"));
    }
    if let Some(size) = rest("vi_rate_tcp_") {
        return Some(format!("tcp_stream_{size}"));
    }
    let limits = [
        ("vi_oneway_shm_poll_", "cacheline_oneway"),
        ("vi_oneway_shm_block_", "futex_oneway"),
        ("vi_messages_shm_", "cacheline_oneway"),
        ("vi_rate_shm_", "shm_copy_64k"),
        ("vi_write_shm_", "copy_alone_1m"),
        ("vi_read_shm_", "copy_alone_1m"),
    ];
    limits.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, limit)| (*limit).to_owned())
}
