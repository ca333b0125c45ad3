//! What becomes of everything when links go, come, are full, or were never there.

use super::*;

#[test]
fn questions_are_asked_again_over_the_next_link() {
    let mut story = Story::in_world(World::apart(2));
    let b = story.at(1, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    let get = story.ask(0, "gets 1's port 1", |engine, links| engine.get_endpoint((0, 1), 1, links));
    let ping = story.ask(0, "pings 1", |engine, links| engine.ping(1, node(1), 2, links));
    let absent = |world: &mut World| world.report(0, Report::Absent { peer: node(1) });
    story.so("nobody answers for 1", absent);
    story.outcome(0, get);
    story.outcome(0, ping);
    story.so("a link comes", |world| world.link(0, 1, false));
    story.outcome(0, get);
    let later = story.ask(0, "gets 1's port 2", |engine, links| engine.get_endpoint((0, 1), 2, links));
    let attribute = |story: &mut Story| {
        story.world.wire(0, 1).full = true;
        story.ask(0, "asks for an attribute while the link is full", |engine, links| {
            engine.endpoint_attribute(b, 1, 4, links)
        })
    };
    let asked = attribute(&mut story);
    story.so("there is room", |world| world.set_full(0, 1, false));
    story.outcome(0, asked);
    let asked = attribute(&mut story);
    story.so("the link is cut", |world| world.cut(0, 1, Loss::Cut));
    story.outcome(0, asked);
    story.outcome(0, later);
    story.so("nobody answers for 1", absent);
    story.so("a link comes", |world| world.link(0, 1, false));
    story.so("1 leaves", |world| world.cut(0, 1, Loss::Gone));
    story.so("nobody answers for 1", absent);
    story.at(0, "takes the question back", |engine, links| engine.cancel(later, links)).unwrap();
    story.is("questions");
}

#[test]
fn messages_without_a_link_wait_or_are_lost() {
    let mut story = Story::of(2);
    let a = story.at(0, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    let b = story.at(1, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    let later = |story: &mut Story, byte| {
        story.at(0, "sends when it can", |engine, links| engine.send_message_later(a, b, 0, std::vec![byte], links))
    };
    story.so("the link is cut", |world| world.cut(0, 1, Loss::Cut));
    let waits = later(&mut story, 1).unwrap();
    story.outcome(0, waits);
    story.so("nobody answers for 1", |world| world.report(0, Report::Absent { peer: node(1) }));
    story.outcome(0, waits);
    let waits = later(&mut story, 2);
    story.note(std::format!("{waits:?}"));
    story.so("a link comes", |world| world.link(0, 1, true));
    if let Ok(waits) = waits {
        story.outcome(0, waits);
    }
    story.world.wire(0, 1).full = true;
    let waiting = [3, 4].map(|byte| later(&mut story, byte).unwrap());
    let sent = story.at(0, "sends", |engine, links| engine.send_message(a, b, 0, &[5], links)).unwrap();
    story.note(std::format!("{sent:?}"));
    story.so("there is room", |world| world.set_full(0, 1, false));
    waiting.iter().for_each(|request| story.outcome(0, *request));
    story.so("1 leaves", |world| world.cut(0, 1, Loss::Gone));
    let sent = story.at(0, "sends", |engine, links| engine.send_message(a, b, 0, &[6], links));
    story.note(std::format!("{sent:?}"));
    story.so("nobody answers for 1", |world| world.report(0, Report::Absent { peer: node(1) }));
    let sent = story.at(0, "sends", |engine, links| engine.send_message(a, b, 0, &[7], links));
    story.note(std::format!("{sent:?}"));
    story.is("unlinked");
}

#[test]
fn control_waits_for_room_in_its_order() {
    let mut story = Story::of(2);
    let ports = [1, 2, 3]
        .map(|port| story.at(0, "creates a port", |engine, links| engine.create_endpoint(Some(port), links)).unwrap());
    let b = story.at(1, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    for port in ports {
        story.at(1, "sends", |engine, links| engine.send_message(b, port, 0, &[1], links)).unwrap();
    }
    story.so("the link from 0 is full", |world| world.wire(0, 1).full = true);
    for port in ports {
        story.at(0, "deletes one", |engine, links| engine.delete_endpoint(port, links)).unwrap();
    }
    let get = story.ask(0, "gets 1's port 1", |engine, links| engine.get_endpoint((0, 1), 1, links));
    story.so("there is room", |world| world.set_full(0, 1, false));
    story.outcome(0, get);
    story.so("the link from 0 is full", |world| world.wire(0, 1).full = true);
    let get = story.ask(0, "gets 1's port 1", |engine, links| engine.get_endpoint((0, 1), 1, links));
    story.at(0, "takes it back", |engine, links| engine.cancel(get, links)).unwrap();
    story.so("there is room", |world| world.set_full(0, 1, false));
    story.so("the link from 1 is full", |world| world.wire(1, 0).full = true);
    let ping = story.ask(0, "pings 1", |engine, links| engine.ping(1, node(1), 100, links));
    story.so("there is room", |world| world.set_full(1, 0, false));
    story.outcome(0, ping);
    story.is("room");
}

#[test]
fn who_is_connected_is_told_to_all_and_first_thing() {
    let mut story = Story::of(3);
    let from = story.at(0, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    let to = story.at(1, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    let c = story.at(2, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    let asked = story.ask(0, "connects", |engine, links| engine.connect(ChannelKind::Packet, from, to, links));
    story.outcome(0, asked);
    let refused = story.at(2, "sends to an end", |engine, links| engine.send_message(c, to, 0, &[1], links));
    story.note(std::format!("{refused:?}"));
    story.so("2 loses 1", |world| world.cut(1, 2, Loss::Cut));
    story.so("2 is back", |world| world.link(1, 2, false));
    let refused = story.at(2, "sends to an end", |engine, links| engine.send_message(c, to, 0, &[1], links));
    story.note(std::format!("{refused:?}"));
    story.so("0 leaves", |world| {
        world.cut(0, 1, Loss::Gone);
        world.cut(0, 2, Loss::Gone);
    });
    let sent = story.at(2, "sends to what was an end", |engine, links| engine.send_message(c, to, 0, &[1], links));
    story.note(std::format!("{sent:?}"));
    story.time_passes();
    story.is("connected");
}
