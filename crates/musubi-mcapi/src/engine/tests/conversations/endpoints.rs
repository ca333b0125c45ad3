//! Endpoints: created, asked for, given back, deleted; attributes and pictures.

use super::*;

#[test]
fn an_endpoint_is_got_now_later_or_not() {
    let mut story = Story::of(2);
    let first = story.at(0, "creates port 5", |engine, links| engine.create_endpoint(Some(5), links)).unwrap();
    let now = story.ask(1, "gets 0's port 5", |engine, links| engine.get_endpoint((0, 0), 5, links));
    story.outcome(1, now);
    let again = story.ask(1, "gets it once more", |engine, links| engine.get_endpoint((0, 0), 5, links));
    story.outcome(1, again);
    let later = story.ask(1, "gets 0's port 6", |engine, links| engine.get_endpoint((0, 0), 6, links));
    let never = story.ask(1, "gets 0's port 7", |engine, links| engine.get_endpoint((0, 0), 7, links));
    let too = story.ask(1, "gets 0's port 7 twice", |engine, links| engine.get_endpoint((0, 0), 7, links));
    story.outcome(1, later);
    story.at(1, "takes one of these back", |engine, links| engine.cancel(never, links)).unwrap();
    story.outcome(1, never);
    story.at(0, "creates port 6", |engine, links| engine.create_endpoint(Some(6), links)).unwrap();
    story.outcome(1, later);
    story.at(0, "creates port 7", |engine, links| engine.create_endpoint(Some(7), links)).unwrap();
    story.outcome(1, too);
    story.at(1, "releases port 5", |engine, links| engine.release_endpoint(first, links)).unwrap();
    story.at(1, "releases it again", |engine, links| engine.release_endpoint(first, links)).unwrap();
    story.at(1, "releases it too often", |engine, links| engine.release_endpoint(first, links)).unwrap();
    let own = story.ask(0, "gets its own port 5", |engine, links| engine.get_endpoint((0, 0), 5, links));
    story.outcome(0, own);
    story.at(0, "releases it", |engine, links| engine.release_endpoint(first, links)).unwrap();
    let own = story.ask(0, "gets its own port 9", |engine, links| engine.get_endpoint((0, 0), 9, links));
    story.outcome(0, own);
    story.at(0, "creates port 9", |engine, links| engine.create_endpoint(Some(9), links)).unwrap();
    story.outcome(0, own);
    story.is("endpoints");
}

#[test]
fn an_endpoint_that_is_deleted_is_told_to_who_sent_to_it() {
    let mut story = Story::of(3);
    let of = |story: &mut Story, at| {
        story.at(at, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap()
    };
    let (a, b, c) = (of(&mut story, 0), of(&mut story, 1), of(&mut story, 2));
    story.at(1, "sends to 0", |engine, links| engine.send_message(b, a, 0, &[1, 2, 3], links)).unwrap();
    let waiting = story.ask(0, "waits for a message", |engine, links| engine.receive_message_later(a, links));
    let more = story.ask(0, "waits for one more", |engine, links| engine.receive_message_later(a, links));
    story.outcome(0, waiting);
    story.at(0, "deletes its endpoint", |engine, links| engine.delete_endpoint(a, links)).unwrap();
    story.outcome(0, more);
    story.at(2, "sends to it", |engine, links| engine.send_message(c, a, 2, &[4], links)).unwrap();
    let refused = story.at(1, "sends to it", |engine, links| engine.send_message(b, a, 0, &[5], links));
    story.note(std::format!("{refused:?}"));
    story.at(0, "creates port 1", |engine, links| engine.create_endpoint(Some(1), links)).unwrap();
    story.is("deleted");
}

#[test]
fn attributes_and_pings_are_answered() {
    let mut story = Story::of(2);
    let a = story.at(0, "creates port 5", |engine, links| engine.create_endpoint(Some(5), links)).unwrap();
    for (number, size) in [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4), (5, 4), (6, 4), (7, 4), (8, 4), (9, 4)] {
        let what = std::format!("asks for attribute {number}");
        let asked = story.at(1, &what, |engine, links| engine.endpoint_attribute(a, number, size, links));
        match asked {
            Ok(request) => story.outcome(1, request),
            Err(error) => story.note(std::format!("{error:?}")),
        }
    }
    for number in 0..4 {
        let what = std::format!("asks for attribute {number} of node 0");
        match story.at(1, &what, |engine, links| engine.node_attribute((0, 0), number, 4, links)) {
            Ok(request) => story.outcome(1, request),
            Err(error) => story.note(std::format!("{error:?}")),
        }
    }
    let ping = story.ask(1, "pings 0", |engine, links| engine.ping(5, node(0), 3, links));
    story.outcome(1, ping);
    let ping = story.ask(1, "pings 0 with a word", |engine, links| engine.ping(7, node(0), 8, links));
    story.outcome(1, ping);
    let own = story.ask(1, "pings itself", |engine, links| engine.ping(9, node(1), 3, links));
    story.outcome(1, own);
    let picture = story.ask(1, "looks at 0", |engine, links| engine.inspect(node(0), 0, links));
    story.outcome(1, picture);
    let picture =
        story.ask(1, "looks at 0 from its endpoints on", |engine, links| engine.inspect(node(0), 0x1_0000, links));
    story.outcome(1, picture);
    story.at(0, "deletes it", |engine, links| engine.delete_endpoint(a, links)).unwrap();
    let gone = story.ask(1, "asks for an attribute", |engine, links| engine.endpoint_attribute(a, 1, 4, links));
    story.outcome(1, gone);
    story.is("attributes");
}
