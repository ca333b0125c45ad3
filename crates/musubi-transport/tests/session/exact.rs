//! Bytes, counts and instants of a session, to the last one.

use musubi_transport::frame::Header;
use musubi_transport::links::{Report, Sent};
use musubi_transport::session::{Broken, Hello, Record, Session, State};

use super::world::{header, network, payload, session};
use super::{MILLISECOND_NS, linked};

/// Bytes of a frame besides its payload.
const HEAD_BYTES: usize = Record::BYTES + Header::BYTES;

/// Everything that is ready, which thereby is written.
fn said(session: &mut Session, now_ns: u64) -> Vec<u8> {
    let ready = session.fill(now_ns, usize::MAX);
    let bytes: Vec<u8> = session.slices().flatten().copied().collect();
    assert_eq!(bytes.len(), ready);
    let before = session.counts().bytes_sent;
    session.consumed(now_ns, ready);
    assert_eq!(session.counts().bytes_sent, before + ready as u64);
    bytes
}

#[test]
fn what_is_ready_shrinks_by_what_is_written() {
    let mut one = session(0, 1);
    one.dial(0);
    assert_eq!(one.fill(0, usize::MAX), Hello::BYTES);
    one.consumed(0, 28);
    assert_eq!((one.fill(0, usize::MAX), one.slices().flatten().count()), (100, 100));
    one.consumed(0, 100);
    assert!(!one.has_output());

    let mut world = linked();
    let one = &mut world.sessions[0];
    one.enqueue(&header(1, 100, 0), &payload(0, 100));
    let whole = HEAD_BYTES + 100;
    for written in 0..whole {
        assert_eq!(one.fill(0, usize::MAX), whole - written);
        one.consumed(0, 1);
    }
    assert!(!one.has_output() && one.only_frame().is_none());
}

#[test]
fn one_frame_alone_is_given_as_two_parts_however_much_of_it_is_written() {
    for shared in [false, true] {
        let mut world = linked();
        let one = &mut world.sessions[0];
        let bytes = payload(3, 250);
        let sent = match shared {
            true => one.enqueue_shared(&header(1, 250, 0), &bytes.clone().into()),
            false => one.enqueue(&header(1, 250, 0), &bytes),
        };
        assert!(matches!(sent, Sent::Numbered(_)));
        one.fill(0, usize::MAX);
        let whole: Vec<u8> = one.slices().flatten().copied().collect();
        for written in 0..whole.len() {
            let parts = one.only_frame().expect("it is alone");
            assert_eq!(parts.concat(), whole[written..]);
            one.consumed(0, 1);
        }
        one.enqueue(&header(1, 250, 0), &bytes);
        one.enqueue(&header(1, 250, 1), &bytes);
        one.fill(0, usize::MAX);
        assert!(one.only_frame().is_none(), "there are two");
    }
}

/// However the bytes of frames fall: unasked, an acknowledgement goes out behind a quarter of the window and not before.
#[test]
fn an_acknowledgement_is_due_behind_a_quarter_of_the_window() {
    let quarter = network().window_bytes as usize / 4;
    for length in [0, 1, 60, 100, 250 - HEAD_BYTES, 200] {
        let mut world = linked();
        let [one, other] = &mut world.sessions;
        let mut came = 0;
        while came <= quarter {
            assert!(matches!(one.enqueue(&header(1, length, 0), &payload(0, length)), Sent::Numbered(_)));
            other.input(0, &said(one, 0)).unwrap();
            came += HEAD_BYTES + length;
            assert_eq!(other.has_output(), came > quarter, "{came} of {quarter} by {length}");
        }
        assert_eq!(said(other, 0).len(), Record::BYTES);
        assert!(!other.has_output());
    }
}

#[test]
fn acknowledgements_and_room_are_reported_once_and_not_too_early() {
    let mut world = linked();
    let [one, other] = &mut world.sessions;
    let mut taken = Vec::new();
    let refused = loop {
        match one.enqueue(&header(1, 2000, 0), &payload(0, 2000)) {
            Sent::Numbered(number) => taken.push(number),
            refused => break refused,
        }
    };
    assert_eq!(refused, Sent::Full);
    while one.next_report().is_some() {}
    // An acknowledgement of nothing makes no room.
    other.flush();
    let nothing = said(other, 0);
    one.input(0, &nothing).unwrap();
    assert!(!one.has_report());
    while one.unacknowledged_bytes() > 0 {
        other.input(0, &said(one, 0)).unwrap();
        other.flush();
        one.input(0, &said(other, 0)).unwrap();
    }
    let reports: Vec<_> = core::iter::from_fn(|| one.next_report()).collect();
    let mut numbers = reports.iter().filter_map(|report| match report {
        Report::Acknowledged { number, .. } => Some(*number),
        _ => None,
    });
    assert_eq!(numbers.next_back(), taken.last().copied());
    assert_eq!(reports.iter().filter(|report| matches!(report, Report::Room { .. })).count(), 1);
    assert_eq!(said(one, 0), []);
}

#[test]
fn what_a_frame_acknowledges_is_reported_before_it() {
    let mut world = linked();
    let [one, other] = &mut world.sessions;
    // Short, in one piece, and in several that come one by one.
    for length in [8, 2000, 50_000] {
        one.enqueue(&header(1, 100, 0), &payload(0, 100));
        other.input(0, &said(one, 0)).unwrap();
        other.enqueue(&header(1, length, 0), &payload(0, length));
        while other.has_output() {
            one.input(0, &said(other, 0)).unwrap();
        }
        let reports: Vec<_> = core::iter::from_fn(|| one.next_report()).collect();
        let place = |is_it: fn(&Report<_>) -> bool| reports.iter().position(is_it).unwrap();
        let acknowledged = place(|report| matches!(report, Report::Acknowledged { .. }));
        let frame = place(|report| matches!(report, Report::Frame { .. }));
        assert!(acknowledged < frame, "{length} {reports:?}");
    }
}

#[test]
fn a_piece_with_another_number_than_the_next_breaks_the_protocol() {
    const NUMBER: usize = 8;
    for (length, piece) in [(100, 0), (5000, 0), (5000, 1)] {
        for off in [0u8, 1, 2, 255] {
            let mut world = linked();
            let [one, other] = &mut world.sessions;
            one.enqueue(&header(1, length, 0), &payload(0, length));
            let mut bytes = Vec::new();
            while one.has_output() {
                let ready = one.fill(0, 1000);
                bytes.extend(one.slices().flatten());
                one.consumed(0, ready);
            }
            let first = Record::BYTES + u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
            let at = piece * first + NUMBER;
            bytes[at] = bytes[at].wrapping_add(off);
            let result = other.input(0, &bytes);
            assert_eq!(result, if off == 0 { Ok(()) } else { Err(Broken::Protocol) }, "{length} {piece} {off}");
            assert_eq!(other.counts().violations, u64::from(off != 0));
        }
    }
}

#[test]
fn a_link_without_connection_is_given_up_at_its_instant() {
    let resume_ns = u64::from(network().resume_ms) * MILLISECOND_NS;
    let [mut one, _] = linked().sessions;
    let lost_ns = 5 * MILLISECOND_NS;
    one.disconnected(lost_ns);
    assert_eq!(one.deadline_ns(), lost_ns + resume_ns);
    // A connection that comes to nothing gives no more time.
    one.dial(7 * MILLISECOND_NS);
    assert_eq!(one.deadline_ns(), (7 + u64::from(network().silence_ms)) * MILLISECOND_NS);
    one.disconnected(8 * MILLISECOND_NS);
    assert_eq!(one.deadline_ns(), lost_ns + resume_ns);
    one.tick(lost_ns + resume_ns - 1).unwrap();
    assert!(one.is_up());
    one.tick(lost_ns + resume_ns).unwrap();
    assert_eq!((one.is_up(), one.deadline_ns(), one.counts().cuts), (false, u64::MAX, 1));
}

#[test]
fn silence_and_heartbeats_come_at_their_instants_and_are_counted() {
    let (heartbeat_ns, silence_ns) =
        (u64::from(network().heartbeat_ms) * MILLISECOND_NS, u64::from(network().silence_ms) * MILLISECOND_NS);
    let [mut one, _] = linked().sessions;
    assert_eq!((one.state(), one.deadline_ns()), (State::Live, heartbeat_ns));
    one.tick(heartbeat_ns - 1).unwrap();
    assert!(!one.has_output());
    one.tick(heartbeat_ns).unwrap();
    assert_eq!(said(&mut one, heartbeat_ns).len(), Record::BYTES);
    assert_eq!(one.deadline_ns(), 2 * heartbeat_ns);
    one.tick(silence_ns - 1).unwrap();
    assert_eq!(one.tick(silence_ns), Err(Broken::Silent));
    assert_eq!((one.counts().silences, one.state()), (1, State::Disconnected));
    // Without a connection there is neither; a second connection that is silent is a second silence.
    one.tick(silence_ns + 2 * heartbeat_ns).unwrap();
    assert!(!one.has_output());
    one.dial(silence_ns);
    assert_eq!(one.tick(2 * silence_ns - 1), Ok(()));
    assert_eq!(one.tick(2 * silence_ns), Err(Broken::Silent));
    assert_eq!(one.counts().silences, 2);
}

#[test]
fn goodbye_is_said_once_after_everything_else() {
    let [mut one, _] = linked().sessions;
    assert!(!one.has_output());
    one.leave();
    assert!(one.has_output());
    assert_eq!(said(&mut one, 0).len(), Record::BYTES);
    assert!(!one.has_output());
}
