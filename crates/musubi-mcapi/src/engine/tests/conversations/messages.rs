//! Messages: credit and its return, what waits, what is taken back.

use super::*;

fn two(story: &mut Story) -> (EndpointId, EndpointId) {
    let a = story.at(0, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    let b = story.at(1, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    (a, b)
}

fn send(story: &mut Story, (from, to): (EndpointId, EndpointId), priority: u32, bytes: &[u8]) {
    let what = std::format!("sends {} bytes at {priority} to {to}", bytes.len());
    let at = from.node().node() as usize;
    let sent = story.at(at, &what, |engine, links| engine.send_message(from, to, priority, bytes, links)).unwrap();
    if sent != Sending::Done {
        story.note(std::format!("{sent:?}"));
    }
}

fn receive(story: &mut Story, at: EndpointId) {
    let node = at.node().node() as usize;
    let message = story.at(node, "receives", |engine, links| engine.receive_message(at, links)).unwrap();
    let message = message.map(|message| (message.from, message.priority, bytes(&message.payload)));
    story.note(std::format!("{message:?}"));
}

#[test]
fn credit_goes_out_and_comes_back() {
    let mut story = Story::of(2);
    let (a, b) = two(&mut story);
    for number in 0..MESSAGE_CREDIT + 1 {
        send(&mut story, (a, b), number % 4, &[number as u8]);
    }
    for _ in 0..3 {
        receive(&mut story, b);
    }
    story.time_passes();
    let waits = story.ask(0, "sends when there is credit", |engine, links| {
        engine.send_message_later(a, b, 1, std::vec![7; 100], links)
    });
    story.outcome(0, waits);
    for number in 0..3 {
        send(&mut story, (a, b), 0, &[100 + number]);
    }
    for _ in 0..MESSAGE_CREDIT {
        receive(&mut story, b);
    }
    story.time_passes();
    receive(&mut story, b);
    receive(&mut story, b);
    story.is("credit");
}

#[test]
fn what_waits_goes_in_order_and_can_be_taken_back() {
    let mut story = Story::of(2);
    let (a, b) = two(&mut story);
    for number in 0..MESSAGE_CREDIT as u8 {
        story.world.send(0, a, b, &[number]).unwrap();
    }
    let later = |story: &mut Story, byte: u8| {
        story.ask(0, "sends when there is credit", |engine, links| {
            engine.send_message_later(a, b, 3, std::vec![byte], links)
        })
    };
    let waiting = [50, 51, 52].map(|byte| later(&mut story, byte));
    story.at(0, "takes the second of them back", |engine, links| engine.cancel(waiting[1], links)).unwrap();
    waiting.iter().for_each(|request| story.outcome(0, *request));
    let receiving =
        [(); 3].map(|()| story.ask(1, "waits for a message", |engine, links| engine.receive_message_later(b, links)));
    story.outcome(1, receiving[0]);
    story.at(1, "drops what the second got", |engine, links| engine.drop_request(receiving[1], links));
    receive(&mut story, b);
    story.time_passes();
    while story.world.engines[1].messages_available(b) != Ok(0) {
        receive(&mut story, b);
    }
    story.time_passes();
    story.outcome(0, waiting[0]);
    story.outcome(0, waiting[2]);
    story.outcome(1, receiving[2]);
    let early = story.ask(1, "waits for a message", |engine, links| engine.receive_message_later(b, links));
    let next = story.ask(1, "waits for one more", |engine, links| engine.receive_message_later(b, links));
    send(&mut story, (a, b), 2, &[60]);
    story.at(1, "drops the first", |engine, links| engine.drop_request(early, links));
    story.outcome(1, next);
    story.is("waiting");
}

#[test]
fn a_node_sends_to_itself() {
    let mut story = Story::of(1);
    let a = story.at(0, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    let b = story.at(0, "creates port 2", |engine, links| engine.create_endpoint(Some(2), links)).unwrap();
    send(&mut story, (a, b), 1, &[1]);
    receive(&mut story, b);
    receive(&mut story, b);
    for number in 0..MESSAGE_CREDIT as u8 {
        story.world.send(0, a, b, &[number]).unwrap();
    }
    let waits = story
        .ask(0, "sends when there is credit", |engine, links| engine.send_message_later(a, b, 0, std::vec![9], links));
    receive(&mut story, b);
    story.outcome(0, waits);
    receive(&mut story, b);
    story.at(0, "leaves", |engine, _| engine.end());
    story.is("itself");
}

#[test]
fn over_a_network_a_send_is_over_when_it_is_confirmed() {
    let mut story = Story::in_world(World::linked(2, true));
    let (a, b) = two(&mut story);
    story.world.confirms = false;
    send(&mut story, (a, b), 0, &[1]);
    send(&mut story, (a, b), 3, &[2]);
    let later = story.ask(0, "sends", |engine, links| engine.send_message_later(a, b, 3, std::vec![3], links));
    story.outcome(0, later);
    story.so("1 confirms", |world| world.confirm(0, 1));
    story.outcome(0, later);
    send(&mut story, (a, b), 1, &[4]);
    story.so("the link is cut", |world| world.cut(0, 1, Loss::Cut));
    story.is("confirmed");
}
