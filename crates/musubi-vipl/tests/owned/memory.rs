//! What is posted and what comes back: messages, RDMA, and postings that are refused.

use musubi_vipl::engine::Reliability;
use musubi_vipl::owned::process::{Nic, Vi};
use musubi_vipl::owned::{CompletionKind, Connected, Permission, RemoteRegion, ViFailure, ViOptions, Work};

use super::{Pair, Way, open, pair, pair_of, soon};

#[test]
fn messages_of_every_size_arrive_whole_and_regions_come_back() {
    for way in Way::ALL {
        for reliability in Reliability::ALL {
            let options = ViOptions { reliability, message_bytes_max: 1 << 20, ..ViOptions::default() };
            let Pair { left, right, mut here, mut there } = pair_of(way, options);
            let mut outgoing = left.region(400_000).unwrap();
            let mut incoming = right.register(vec![0; 400_000].into_boxed_slice()).unwrap();
            let places = (outgoing.as_ptr(), incoming.as_ptr());
            for bytes in [0, 1, 4, 8, 9, 64, 400, 4096, 65_537, 300_000] {
                outgoing.iter_mut().enumerate().for_each(|(place, byte)| *byte = (place * 7 + bytes) as u8);
                there.receives().post(incoming).unwrap();
                here.sends().post(Work::send(outgoing).part(0..bytes).immediate(bytes as u32)).unwrap();
                let came = there.receives().completed().wait(soon()).unwrap().done().unwrap();
                assert_eq!((came.kind, came.bytes), (CompletionKind::Received, bytes), "{way:?}");
                assert_eq!(came.immediate, Some(bytes as u32));
                let sent = here.sends().completed().wait(soon()).unwrap().done().unwrap();
                assert_eq!((sent.kind, sent.bytes), (CompletionKind::Sent, bytes));
                assert_eq!(came.region[..bytes], sent.region[..bytes], "{way:?} {bytes}");
                (outgoing, incoming) = (sent.region, came.region);
                assert_eq!((outgoing.as_ptr(), incoming.as_ptr()), places, "the same memory");
            }
            assert_eq!(incoming.into_vec().len(), 400_000);
        }
    }
}

#[test]
fn a_refused_posting_gives_the_memory_back_as_it_was() {
    let Pair { left, right, mut here, there: _there } = pair(Way::SharedMemory);
    let region = |nic: &Nic, bytes| nic.register(vec![7; bytes]).unwrap();
    let remote = RemoteRegion::from_bytes(&[0; RemoteRegion::BYTES]).unwrap();
    let too_long = region(&left, 70_000);
    let backwards = std::ops::Range { start: 3, end: 2 };
    let wrong = [
        (Work::send(too_long), ViFailure::Length),
        (Work::send(region(&left, 8)).part(4..9), ViFailure::Invalid),
        (Work::send(region(&left, 8)).part(backwards), ViFailure::Invalid),
        (Work::send(region(&right, 8)), ViFailure::Invalid),
        (Work::send(region(&left.apart().unwrap(), 8)), ViFailure::Invalid),
        (Work::write(region(&left, 8), remote), ViFailure::Invalid),
        (Work::read(region(&left, 8), remote).part(0..0).immediate(1), ViFailure::Invalid),
    ];
    for (work, failure) in wrong {
        let unposted = here.sends().post(work).unwrap_err();
        assert_eq!(unposted.failure, failure);
        assert!(unposted.region.iter().all(|byte| *byte == 7) && !unposted.region.is_empty());
    }
    assert_eq!(here.receives().post(region(&right, 8)).unwrap_err().failure, ViFailure::Invalid);
    assert_eq!(here.sends().done().unwrap_err(), ViFailure::NothingPosted);
    assert_eq!(left.region(0).unwrap_err(), ViFailure::Invalid);
    assert!(here.is_connected());
}

#[test]
fn a_full_queue_refuses_and_every_posted_region_comes_back_in_order() {
    let Pair { left, mut here, there: _there, .. } = pair(Way::SharedMemory);
    let mut posted = 0_u32;
    let refused = loop {
        let mut region = left.region(4).unwrap();
        region.copy_from_slice(&posted.to_le_bytes());
        match here.receives().post(region) {
            Ok(()) => posted += 1,
            Err(unposted) => break unposted,
        }
    };
    assert_eq!((refused.failure, &refused.region[..]), (ViFailure::Limit, &posted.to_le_bytes()[..]));
    let (mut vi, back) = here.disconnect();
    let numbers: Vec<u32> = back.iter().map(|one| u32::from_le_bytes(one.region[..].try_into().unwrap())).collect();
    assert_eq!(numbers, (0..posted).collect::<Vec<_>>());
    assert!(back.iter().all(|one| one.outcome == Err(ViFailure::Ended)));
    vi.receives().post(refused.region).unwrap();
}

#[test]
fn what_a_dropped_vi_had_is_given_up() {
    let (left, _right) = open(Way::SharedMemory);
    // More than the NIC can have at a time, if any stayed.
    for _ in 0..5 {
        let mut vi = left.vi(ViOptions::default()).unwrap();
        let regions: Vec<_> = (0..8000).map(|_| left.region(1).unwrap()).collect();
        for (place, region) in regions.into_iter().enumerate() {
            if place % 2 == 0 {
                let _ = vi.receives().post(region);
            }
        }
    }
}

fn told(pair: &mut Pair, permission: Permission) -> (musubi_vipl::owned::process::SharedRegion, RemoteRegion) {
    let shared = pair.right.share(4096, permission).unwrap();
    let mut word = pair.right.region(RemoteRegion::BYTES).unwrap();
    word.copy_from_slice(&shared.remote().to_bytes());
    pair.here.receives().post(pair.left.region(64).unwrap()).unwrap();
    pair.there.sends().post(Work::send(word)).unwrap();
    let came = pair.here.receives().completed().wait(soon()).unwrap().done().unwrap();
    (shared, RemoteRegion::from_bytes(&came.region[..came.bytes]).unwrap())
}

fn both_ways() -> ViOptions {
    ViOptions { remote_write: true, remote_read: true, ..ViOptions::default() }
}

fn ended(vi: &mut Vi<Connected>) -> Result<(), ViFailure> {
    vi.sends().completed().wait(soon()).unwrap().outcome
}

#[test]
fn shared_regions_are_written_and_read_where_they_permit_it() {
    for way in Way::ALL {
        let mut pair = pair_of(way, both_ways());
        let (shared, remote) = told(&mut pair, Permission { write: true, read: true });
        assert_eq!((shared.remote(), remote.len(), shared.len()), (remote, 4096, 4096));
        shared.write(0, b"before").unwrap();
        let mut region = pair.left.region(8).unwrap();
        region.copy_from_slice(b"written!");
        pair.there.receives().post(pair.right.region(1).unwrap()).unwrap();
        let to = remote.part(100..200).unwrap();
        pair.here.sends().post(Work::write(region, to).immediate(77)).unwrap();
        let came = pair.there.receives().completed().wait(soon()).unwrap().done().unwrap();
        assert_eq!((came.kind, came.immediate), (CompletionKind::WrittenByPeer, Some(77)));
        let mut seen = [0; 10];
        shared.read(99, &mut seen).unwrap();
        assert_eq!(&seen, b"\0written!\0");
        let written = pair.here.sends().completed().wait(soon()).unwrap().done().unwrap();
        assert_eq!(written.kind, CompletionKind::Written);
        pair.here.sends().post(Work::read(written.region, remote).part(1..7)).unwrap();
        let read = pair.here.sends().completed().wait(soon()).unwrap().done().unwrap();
        assert_eq!((read.kind, &read.region[..]), (CompletionKind::Read, &b"wbefore!"[..]));
        let mut outside = [0; 2];
        assert_eq!(shared.read(4095, &mut outside), Err(ViFailure::Invalid));
        assert_eq!(shared.write(usize::MAX, &outside), Err(ViFailure::Invalid));
    }
}

#[test]
fn what_a_shared_region_does_not_permit_is_refused_and_changes_nothing() {
    let mut pair = pair_of(Way::SharedMemory, ViOptions { reliability: Reliability::Reception, ..both_ways() });
    let (shared, remote) = told(&mut pair, Permission { write: false, read: true });
    pair.here.sends().post(Work::write(pair.left.register(vec![9; 8]).unwrap(), remote)).unwrap();
    assert_eq!(ended(&mut pair.here), Err(ViFailure::RemoteAccess));
    pair.here.ended().wait(soon()).unwrap();
    let mut seen = [0; 8];
    shared.read(0, &mut seen).unwrap();
    assert_eq!(seen, [0; 8]);
}

#[test]
fn a_shared_region_that_was_dropped_is_not_there_for_peers() {
    let mut pair = pair_of(Way::SharedMemory, both_ways());
    let (shared, remote) = told(&mut pair, Permission { write: true, read: true });
    drop(shared);
    pair.here.sends().post(Work::read(pair.left.region(8).unwrap(), remote)).unwrap();
    assert_eq!(ended(&mut pair.here), Err(ViFailure::RemoteAccess));
}
