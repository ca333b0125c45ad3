//! What must be true of messages and packets, whatever happens: kept apart from the nodes, checked at each step.
//!
//! How it works: everything sent carries a number. A *stream* is what has to keep its order: the messages of one run of a
//! node to one endpoint in one priority, or the packets of one connection of a channel. What was received stands for
//! everything of its stream that was sent before it: that must have been received too, or be reported as lost.

use std::collections::BTreeMap;

use musubi_mcapi::EndpointId;

/// What was broken, in words.
pub type Verdict = Result<(), String>;

/// What has to keep its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream {
    /// The sending node and which run of it.
    pub node: usize,
    pub life: u32,
    /// Where to.
    pub to: EndpointId,
    pub priority: u8,
}

/// What the sender was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Nothing,
    Delivered,
    Lost,
}

#[derive(Debug)]
struct Item {
    stream: Stream,
    sent_at: u64,
    told: Told,
    received: bool,
    /// Something later of its stream was received: it must not be any more.
    passed: bool,
}

#[derive(Debug, Default)]
pub struct Oracle {
    items: BTreeMap<u64, Item>,
    /// Numbers of each stream that are neither received nor passed, in order.
    open: BTreeMap<Stream, Vec<u64>>,
    next: u64,
    pub received: u64,
    pub delivered: u64,
    pub lost: u64,
}

impl Oracle {
    /// The number of the next thing to be sent.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// It was taken.
    pub fn sent(&mut self, number: u64, stream: Stream, event: u64) {
        self.items.insert(number, Item { stream, sent_at: event, told: Told::Nothing, received: false, passed: false });
        self.open.entry(stream).or_default().push(number);
    }

    /// The sender was told what became of it.
    pub fn told(&mut self, number: u64, told: Told) -> Verdict {
        let item = self.items.get_mut(&number).ok_or_else(|| format!("told about {number}, which was never sent"))?;
        if item.told != Told::Nothing {
            return Err(format!("told twice about {number}: {item:?}"));
        }
        item.told = told;
        match told {
            Told::Delivered => self.delivered += 1,
            _ => self.lost += 1,
        }
        if told == Told::Delivered && item.passed && !item.received {
            return Err(format!("{number} was confirmed, but what followed it came without it: {item:?}"));
        }
        Ok(())
    }

    /// It came out at its destination.
    pub fn received(&mut self, number: u64, at: EndpointId) -> Verdict {
        let item = self.items.get_mut(&number).ok_or_else(|| format!("{number} came from nowhere"))?;
        if item.stream.to != at {
            return Err(format!("{number} came to {at}: {item:?}"));
        }
        if item.received {
            return Err(format!("{number} came twice: {item:?}"));
        }
        if item.passed {
            return Err(format!("{number} came after what was sent later: {item:?}"));
        }
        item.received = true;
        self.received += 1;
        let stream = item.stream;
        let open = self.open.get_mut(&stream).ok_or("a stream without items")?;
        let place = open.iter().position(|other| *other == number).ok_or("an item that is not of its stream")?;
        let passed: Vec<u64> = open.drain(..=place).take(place).collect();
        for number in passed {
            let item = self.items.get_mut(&number).ok_or("an item of a stream that is none")?;
            item.passed = true;
            if item.told == Told::Delivered {
                return Err(format!("{number} was confirmed, but what followed it came without it: {item:?}"));
            }
        }
        Ok(())
    }

    /// At the end: what was confirmed has come, if its endpoint was there all the time; nobody waits for word.
    /// `since` gives the event at which an endpoint that exists was created, `lives` whether a sender's run goes on.
    pub fn settled(&self, since: impl Fn(EndpointId) -> Option<u64>, lives: impl Fn(usize, u32) -> bool) -> Verdict {
        for (number, item) in &self.items {
            let there = since(item.stream.to).is_some_and(|since| since < item.sent_at);
            if item.told == Told::Delivered && !item.received && there {
                return Err(format!("{number} was confirmed and never came: {item:?}"));
            }
            if item.told == Told::Nothing && lives(item.stream.node, item.stream.life) {
                return Err(format!("nobody was told what became of {number}: {item:?}"));
            }
        }
        Ok(())
    }

    /// Where something goes.
    pub fn destination(&self, number: u64) -> Option<EndpointId> {
        self.items.get(&number).map(|item| item.stream.to)
    }

    pub fn sent_count(&self) -> usize {
        self.items.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use musubi_transport::NodeId;

    fn stream() -> Stream {
        let to = EndpointId::new(NodeId::from_index(3).unwrap(), 1, 1);
        Stream { node: 0, life: 1, to, priority: 0 }
    }

    fn three() -> Oracle {
        let mut oracle = Oracle::default();
        (1..=3).for_each(|number| oracle.sent(number, stream(), number));
        oracle
    }

    #[test]
    fn what_is_right_passes() {
        let mut oracle = three();
        oracle.told(2, Told::Lost).unwrap();
        for number in [1, 3] {
            oracle.received(number, stream().to).unwrap();
            oracle.told(number, Told::Delivered).unwrap();
        }
        oracle.settled(|_| Some(0), |_, _| true).unwrap();
    }

    #[test]
    fn what_is_wrong_does_not() {
        assert!(three().received(4, stream().to).is_err(), "from nowhere");
        let elsewhere = EndpointId::new(NodeId::from_index(4).unwrap(), 1, 1);
        assert!(three().received(1, elsewhere).is_err(), "to another endpoint");
        let mut twice = three();
        twice.received(1, stream().to).unwrap();
        assert!(twice.received(1, stream().to).is_err(), "twice");
        let mut order = three();
        order.received(2, stream().to).unwrap();
        assert!(order.received(1, stream().to).is_err(), "out of order");
        let mut lost = three();
        lost.told(1, Told::Delivered).unwrap();
        assert!(lost.received(2, stream().to).is_err(), "confirmed and passed");
        let mut late = three();
        late.received(2, stream().to).unwrap();
        assert!(late.told(1, Told::Delivered).is_err(), "passed and confirmed");
        let mut last = three();
        last.told(3, Told::Delivered).unwrap();
        assert!(last.settled(|_| Some(0), |_, _| false).is_err(), "confirmed and never came");
        assert!(last.settled(|_| Some(9), |_, _| false).is_ok(), "the endpoint is a later one");
        assert!(three().settled(|_| None, |_, _| true).is_err(), "no word");
    }
}
