//! Channels: connected by any node, opened, used, closed, undone.

use super::*;

struct Ends {
    from: EndpointId,
    to: EndpointId,
}

fn ends(story: &mut Story) -> Ends {
    let from = story.at(0, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    let to = story.at(1, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    Ends { from, to }
}

fn connect(story: &mut Story, at: usize, kind: ChannelKind, ends: &Ends) {
    let asked = story.ask(at, "connects", |engine, links| engine.connect(kind, ends.from, ends.to, links));
    story.outcome(at, asked);
}

fn open(story: &mut Story, kind: ChannelKind, ends: &Ends) -> (ChannelHandle, ChannelHandle) {
    let (sending, first) =
        story.at(0, "opens to send", |engine, links| engine.open(kind, false, ends.from, links)).unwrap();
    story.outcome(0, first);
    let (receiving, second) =
        story.at(1, "opens to receive", |engine, links| engine.open(kind, true, ends.to, links)).unwrap();
    story.outcome(0, first);
    story.outcome(1, second);
    (sending, receiving)
}

fn close(story: &mut Story, kind: ChannelKind, (sending, receiving): (ChannelHandle, ChannelHandle)) {
    let first = story.ask(0, "closes", |engine, links| engine.close(kind, false, sending, links));
    story.outcome(0, first);
    let second = story.ask(1, "closes", |engine, links| engine.close(kind, true, receiving, links));
    story.outcome(0, first);
    story.outcome(1, second);
}

#[test]
fn packets_flow_by_credit() {
    let mut story = Story::of(3);
    let ends = ends(&mut story);
    connect(&mut story, 2, ChannelKind::Packet, &ends);
    connect(&mut story, 1, ChannelKind::Packet, &ends);
    let (sending, receiving) = open(&mut story, ChannelKind::Packet, &ends);
    for number in 0..PACKET_CREDIT as usize + 1 {
        let packet = std::vec![number as u8; 1 + number * 40];
        let sent = story.at(0, "sends a packet", |engine, links| engine.send_packet(sending, &packet, links)).unwrap();
        if sent != Sending::Done {
            story.note(std::format!("{sent:?}"));
        }
    }
    let later =
        story.ask(0, "sends one later", |engine, links| engine.send_packet_later(sending, std::vec![1, 2], links));
    let undone = story.ask(0, "one more", |engine, links| engine.send_packet_later(sending, std::vec![3], links));
    story.at(0, "takes that back", |engine, links| engine.cancel(undone, links)).unwrap();
    while story.world.engines[1].channel_available(ChannelKind::Packet, receiving) != Ok(0) {
        let packet = story.at(1, "receives", |engine, links| engine.receive_packet(receiving, links)).unwrap().unwrap();
        let length = bytes(&packet).len();
        story.note(std::format!("{length} bytes"));
        story.at(1, "releases it", |engine, links| engine.packet_released(receiving, length, links));
    }
    story.outcome(0, later);
    let waiting = story.ask(1, "waits for a packet", |engine, links| engine.receive_packet_later(receiving, links));
    let next = story.ask(1, "waits for another", |engine, links| engine.receive_packet_later(receiving, links));
    story
        .at(0, "sends two", |engine, links| {
            let both = [std::vec![8], std::vec![9, 9]].map(Into::into);
            engine.send_packets_shared(sending, &both, links)
        })
        .unwrap();
    story.at(1, "drops the first", |engine, links| engine.drop_request(waiting, links));
    story.outcome(1, next);
    let rest = story.at(1, "receives", |engine, links| engine.receive_packet(receiving, links)).unwrap();
    story.note(std::format!("{:?}", rest.map(|packet| bytes(&packet))));
    close(&mut story, ChannelKind::Packet, (sending, receiving));
    story.is("packets");
}

#[test]
fn scalars_of_each_size_arrive() {
    let mut story = Story::of(2);
    let ends = ends(&mut story);
    connect(&mut story, 0, ChannelKind::Scalar, &ends);
    let (sending, receiving) = open(&mut story, ChannelKind::Scalar, &ends);
    for size in [1, 2, 4, 8] {
        let value = 0x0102_0304_0506_0708;
        story.at(0, "sends a scalar", |engine, links| engine.send_scalar(sending, size, value, links)).unwrap();
    }
    let available = story.world.engines[1].channel_available(ChannelKind::Scalar, receiving);
    story.note(std::format!("{available:?}"));
    for size in [1, 2, 8, 4] {
        let came = story.at(1, "receives", |engine, links| engine.receive_scalar(receiving, size, links));
        story.note(std::format!("{came:?}"));
    }
    for size in [8, 4] {
        let came = story.at(1, "receives", |engine, links| engine.receive_scalar(receiving, size, links));
        story.note(std::format!("{came:?}"));
    }
    let mut count = 0;
    while story.world.on(0, |engine, links| engine.send_scalar(sending, 4, count, links)) == Ok(Sending::Done) {
        count += 1;
    }
    story.so(&std::format!("0 sends {count} scalars, and has no credit for more"), |_| {});
    for _ in 0..count {
        story.world.on(1, |engine, links| engine.receive_scalar(receiving, 4, links)).unwrap();
    }
    story.so("1 receives them", |_| {});
    close(&mut story, ChannelKind::Scalar, (sending, receiving));
    story.is("scalars");
}

#[test]
fn what_does_not_fit_is_refused_and_what_was_begun_is_undone() {
    let mut story = Story::of(3);
    let ends = ends(&mut story);
    let other = story.at(1, "creates port 2", |engine, links| engine.create_endpoint(Some(2), links)).unwrap();
    story
        .at(1, "gives it another priority", |engine, _| engine.set_endpoint_attribute(other, 7, &1_u32.to_ne_bytes()))
        .unwrap();
    let refused = Ends { from: ends.from, to: other };
    connect(&mut story, 2, ChannelKind::Packet, &refused);
    connect(&mut story, 2, ChannelKind::Packet, &Ends { from: ends.to, to: ends.from });
    let (_, opening) = story
        .at(0, "opens to receive", |engine, links| engine.open(ChannelKind::Packet, true, ends.from, links))
        .unwrap();
    story.outcome(0, opening);
    let deleted = story.at(1, "deletes the other end", |engine, links| engine.delete_endpoint(ends.to, links));
    story.note(std::format!("{deleted:?}"));
    let asked = story
        .ask(2, "releases, so gives up", |engine, links| engine.release_endpoint(ends.from, links).map(|()| opening));
    let _ = asked;
    story.at(1, "gives the connection up", |engine, links| engine.release_endpoint(ends.to, links)).unwrap();
    connect(&mut story, 0, ChannelKind::Scalar, &ends);
    let asked = story.ask(2, "connects", |engine, links| engine.connect(ChannelKind::Scalar, ends.from, other, links));
    story.outcome(2, asked);
    story.is("refused");
}

#[test]
fn an_opening_is_taken_back_and_a_lost_end_is_known() {
    let mut story = Story::of(3);
    let ends = ends(&mut story);
    connect(&mut story, 0, ChannelKind::Packet, &ends);
    let (_, opening) = story
        .at(0, "opens to send", |engine, links| engine.open(ChannelKind::Packet, false, ends.from, links))
        .unwrap();
    story.at(0, "takes that back", |engine, links| engine.cancel(opening, links)).unwrap();
    story.outcome(0, opening);
    let (sending, receiving) = open(&mut story, ChannelKind::Packet, &ends);
    story.at(0, "sends a packet", |engine, links| engine.send_packet(sending, &[1], links)).unwrap();
    story.so("the link is cut", |world| world.cut(0, 1, Loss::Cut));
    let sent = story.at(0, "sends a packet", |engine, links| engine.send_packet(sending, &[2], links));
    story.note(std::format!("{sent:?}"));
    for _ in 0..2 {
        let came = story.at(1, "receives", |engine, links| engine.receive_packet(receiving, links));
        story.note(std::format!("{:?}", came.map(|packet| packet.map(|packet| bytes(&packet)))));
    }
    let closed = story.ask(1, "closes", |engine, links| engine.close(ChannelKind::Packet, true, receiving, links));
    story.outcome(1, closed);
    let closed = story.ask(0, "closes", |engine, links| engine.close(ChannelKind::Packet, false, sending, links));
    story.outcome(0, closed);
    story.so("there is a link again", |world| world.link(0, 1, false));
    connect(&mut story, 1, ChannelKind::Scalar, &ends);
    story.is("lost");
}

#[test]
fn of_two_that_connect_each_other_at_the_same_time_one_yields() {
    let mut story = Story::of(2);
    let ends = ends(&mut story);
    for (at, from, to) in [(0, ends.from, ends.to), (1, ends.to, ends.from)] {
        let asked = story.world.on(at, |engine, links| engine.connect(ChannelKind::Packet, from, to, links)).unwrap();
        story.note(std::format!("{at} connects its end with the other's: {:#x}", asked.0));
    }
    story.so("both questions cross", |_| {});
    for at in [0, 1] {
        story.outcome(at, RequestId(0x1_0000));
    }
    story.is("crossing");
}
