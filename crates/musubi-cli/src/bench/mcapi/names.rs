//! The figures' names: what sizes they are of, and which limit each is compared with.

/// Sizes of messages whose latency is measured, in bytes: the paper's figure 1, to the largest message.
pub(super) const MESSAGES: [usize; 7] = [1, 8, 64, 512, 4096, 32_768, 65_536];
/// Sizes of packets whose rate is measured: the paper's figure 2, to the largest packet.
pub(super) const PACKETS: [usize; 7] = [64, 512, 4096, 32_768, 65_536, 262_144, 1_048_576];
/// Size of packets that are also sent one a call over TCP, and from memory that is copied.
pub(super) const OTHERWISE_BYTES: usize = 32_768;
/// Urgent messages: without load, with load, with load but without priorities; then the rates of the loads.
pub(super) const URGENT_NAMES: [&str; 5] = [
    "urgent_oneway_idle_64",
    "urgent_oneway_loaded_64",
    "urgent_oneway_loaded_unprioritized_64",
    "urgent_bulk_rate",
    "urgent_bulk_rate_unprioritized",
];

/// The name of a result's limit.
pub(super) fn limit_of(name: &str) -> Option<String> {
    let rest = |prefix: &str| name.strip_prefix(prefix);
    if let Some(how_and_size) = rest("msg_oneway_tcp_") {
        return Some(format!("tcp_oneway_{how_and_size}"));
    }
    let over_tcp = ["pkt_rate_tcp_single_", "pkt_rate_tcp_copied_", "pkt_rate_tcp_"];
    if let Some(size) = over_tcp.into_iter().find_map(rest) {
        return Some(format!("tcp_stream_{size}"));
    }
    if let Some(size) = rest("pkt_rate_line_") {
        return Some(format!("tcp_line_{size}"));
    }
    let limits = [
        ("msg_oneway_shm_poll_", "cacheline_oneway"),
        ("msg_oneway_shm_block_", "futex_oneway"),
        ("scl_oneway_shm_poll_", "cacheline_oneway"),
        ("pkt_rate_shm_", "shm_copy_64k"),
    ];
    limits.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, limit)| (*limit).to_owned())
}
