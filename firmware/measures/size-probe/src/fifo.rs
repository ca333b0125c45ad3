//! Both ends of one FIFO channel: opened, used, and taken through the restart of the peer.

use core::cell::UnsafeCell;
use core::hint::black_box;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU32;

use musubi_core::layout::{Shape, rx, tx};
use musubi_core::plan::{Fifo, FilterRule, OnRestart, Regulation, Trust};
use musubi_core::port::{Clock, Coherent, Doorbell};
use musubi_core::words::{OwnWords, PeerWords};

const BLOCKS: usize = 8;
const FIFO: Fifo<'static> = Fifo {
    name: "",
    from: 0,
    to: 1,
    blocks: BLOCKS as u32,
    block_bytes: 48,
    priority: 0,
    filter: if cfg!(feature = "filter") {
        FilterRule { every: 4, level: 3, interval_ns_min: 1_000_000, latest_ns: 5_000_000 }
    } else {
        FilterRule::EACH
    },
    regulation: if cfg!(feature = "regulator") {
        Regulation { messages_per_s: 1_000, messages_burst: 4, bytes_per_s: 100_000, bytes_burst: 1_000 }
    } else {
        Regulation::NONE
    },
    budget_ns: 1_000_000,
    on_restart: OnRestart::Keep,
    sample_every: 1,
};
static PLAN: Fifo<'static> = FIFO;

const SHAPE: Shape = match Shape::of(&FIFO) {
    Some(shape) => shape,
    None => panic!("the plan has no shape"),
};
/// Words of a transmit end.
const TX_WORDS: usize = tx::WORDS as usize + BLOCKS * SHAPE.stride_bytes as usize / 4;
/// Words of a receive end.
const RX_WORDS: usize = rx::WORDS as usize + BLOCKS.next_multiple_of(16);

/// Memory that stands for the channel's own.
#[repr(align(64))]
struct Memory<const WORDS: usize>([AtomicU32; WORDS]);

impl<const WORDS: usize> Memory<WORDS> {
    const fn new() -> Self {
        Memory([const { AtomicU32::new(0) }; WORDS])
    }

    fn own(&'static self) -> OwnWords<'static> {
        // SAFETY: the memory is static, aligned, and of this length; the image makes one such view of it.
        unsafe { OwnWords::new(self.0.as_ptr().cast_mut().cast(), WORDS as u32) }
    }

    fn peer(&'static self) -> PeerWords<'static> {
        // SAFETY: the memory is static, aligned, and of this length.
        unsafe { PeerWords::new(self.0.as_ptr().cast(), WORDS as u32) }
    }
}

#[unsafe(link_section = ".channels")]
static TX: Memory<TX_WORDS> = Memory::new();
#[unsafe(link_section = ".channels")]
static RX: Memory<RX_WORDS> = Memory::new();

/// Memory of an end, which the image fills when it opens the end, so that it needs no initial value in flash.
struct Place<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: the image has one thread.
unsafe impl<T> Sync for Place<T> {}

impl<T> Place<T> {
    const fn new() -> Self {
        Place(UnsafeCell::new(MaybeUninit::uninit()))
    }

    const fn holding(value: T) -> Self {
        Place(UnsafeCell::new(MaybeUninit::new(value)))
    }

    #[inline(always)]
    fn fill(&'static self, value: T) -> &'static mut T {
        // SAFETY: the image has one thread, which opens an end before it uses it and once only.
        unsafe { &mut *self.0.get() }.write(value)
    }

    fn filled(&'static self) -> &'static mut T {
        // SAFETY: the image has one thread and is not within another use of the place.
        let place = unsafe { &mut *self.0.get() };
        // SAFETY: command 0 filled it; the image sends others after that only.
        unsafe { place.assume_init_mut() }
    }
}

/// A time and a wake-up that cost as little as they can, since a board's are the board's.
struct Board;

impl Clock for Board {
    fn now_ns(&self) -> u64 {
        u64::from(black_box(1u32))
    }
}

impl Doorbell for Board {
    fn ring(&self, bell: &AtomicU32, waiting: u32) {
        bell.store(waiting, core::sync::atomic::Ordering::Release);
    }
}

pub use receiving::receive;
pub use sending::send;

/// One operation of an image that has no other use for it: called, not inlined, so that its symbol has its size.
macro_rules! operation {
    ($name:ident($($argument:ident: $kind:ty),*) -> $result:ty $body:block) => {
        #[inline(never)]
        fn $name($($argument: $kind),*) -> $result $body
    };
}

mod sending {
    use musubi_core::fifo::{Entry, Loan, Notified, Ring, Sender, session};

    use super::*;

    #[cfg(feature = "filter")]
    type Filtered = musubi_core::guarantee::Filter;
    #[cfg(not(feature = "filter"))]
    type Filtered = musubi_core::guarantee::Each;
    #[cfg(feature = "regulator")]
    type Regulated = musubi_core::guarantee::Regulator;
    #[cfg(not(feature = "regulator"))]
    type Regulated = musubi_core::guarantee::Unregulated;
    type Sending = Sender<'static, &'static mut [Entry; BLOCKS], Coherent, Filtered, Regulated>;

    struct Rest {
        loan: Option<Loan<'static>>,
        start: u32,
    }
    static SENDER: Place<Sending> = Place::new();
    static REST: Place<Rest> = Place::new();
    static ACCOUNT: Place<[Entry; BLOCKS]> = Place::holding([Entry::NEW; BLOCKS]);

    operation!(open_sender(epoch: u32) -> u32 {
        match Sender::carrying(TX.own(), &PLAN, (1, epoch), ACCOUNT.filled(), Coherent) {
            Ok(sender) => {
                SENDER.fill(sender);
                REST.fill(Rest { loan: None, start: 0 }).start
            }
            Err(_) => 1,
        }
    });
    operation!(allocate(sender: &mut Sending, loan: &mut Option<Loan<'static>>) -> u32 {
        *loan = sender.allocate().ok();
        0
    });
    operation!(enqueue(sender: &mut Sending, held: &mut Option<Loan<'static>>, bytes: u32) -> u32 {
        let Some(loan) = held.take() else { return 0 };
        match sender.enqueue(loan, bytes, &Board) {
            Ok(()) => 1,
            Err((_, loan)) => {
                *held = Some(loan);
                0
            }
        }
    });
    operation!(notify(sender: &mut Sending) -> u32 { u32::from(sender.notify(&Board, &Board) == Notified::Raised) });
    operation!(free_unsent(sender: &mut Sending, loan: &mut Option<Loan<'static>>) -> u32 {
        *loan = loan.take().and_then(|loan| sender.free(loan).err());
        0
    });
    #[cfg(feature = "wait")]
    operation!(poll(sender: &mut Sending) -> u32 { u32::from(sender.poll().block) });
    #[cfg(feature = "wait")]
    operation!(sender_sleeps(sender: &mut Sending, bits: u32) -> u32 { u32::from(sender.announce_wait(bits).event) });
    #[cfg(feature = "filter")]
    operation!(filter(sender: &mut Sending, argument: u32) -> u32 {
        sender.set_filter(FilterRule { every: argument, ..FIFO.filter }, &Board);
        u32::from(sender.raise_if_due(&Board, &Board))
    });
    operation!(follow_receiver(sender: &mut Sending, start: &mut u32, epoch: u32) -> u32 {
        let on_restart = PLAN.on_restart;
        let ring = Ring::new(BLOCKS as u32);
        *start = session::end_link(&TX.own(), Some(RX.peer()), ring, (1, epoch), *start, on_restart);
        session::publish_link(&TX.own(), 2, epoch, *start);
        sender.set_receiver(Some(RX.peer()), *start)
    });

    pub fn send(command: u32, argument: u32) -> u32 {
        if command == 0 {
            return open_sender(argument);
        }
        let (sender, Rest { loan, start }) = (SENDER.filled(), REST.filled());
        match command {
            1 => allocate(sender, loan),
            2 => enqueue(sender, loan, argument),
            3 => notify(sender),
            4 => free_unsent(sender, loan),
            #[cfg(feature = "wait")]
            5 => poll(sender),
            #[cfg(feature = "wait")]
            6 => sender_sleeps(sender, argument),
            #[cfg(feature = "filter")]
            7 => filter(sender, argument),
            _ => follow_receiver(sender, start, argument),
        }
    }
}

mod receiving {
    use musubi_core::fifo::{Received, Receiver};

    use super::*;

    type Receiving = Receiver<'static, [u32; 1], Coherent>;

    struct Rest {
        message: Option<Received<'static>>,
        payload: [u8; 16],
    }
    static RECEIVER: Place<Receiving> = Place::new();
    static REST: Place<Rest> = Place::new();

    operation!(open_receiver(epoch: u32) -> u32 {
        let trust = Trust::MayCrash;
        match Receiver::new(RX.own(), TX.peer(), &PLAN, (2, epoch), (1, epoch), trust, [0], Coherent) {
            Ok(receiver) => {
                RECEIVER.fill(receiver);
                u32::from(REST.fill(Rest { message: None, payload: [0; 16] }).payload[0])
            }
            Err(_) => 1,
        }
    });
    operation!(dequeue(receiver: &mut Receiving, message: &mut Option<Received<'static>>) -> u32 {
        *message = receiver.dequeue(&Board, &Board).ok();
        0
    });
    operation!(copy_out(message: &Option<Received<'static>>, into: &mut [u8], offset: u32) -> u32 {
        message.as_ref().map_or(0, |message| message.copy_to(offset, into) as u32)
    });
    operation!(free_received(receiver: &mut Receiving, message: &mut Option<Received<'static>>) -> u32 {
        *message = message.take().and_then(|message| receiver.free(message, &Board).err());
        0
    });
    #[cfg(feature = "wait")]
    operation!(ready(receiver: &mut Receiving) -> u32 { u32::from(receiver.ready()) });
    #[cfg(feature = "wait")]
    operation!(receiver_sleeps(receiver: &mut Receiving, bits: u32) -> u32 { u32::from(receiver.announce_wait(bits)) });
    #[cfg(feature = "wait")]
    operation!(answer(receiver: &mut Receiving) -> u32 {
        receiver.notify(&Board);
        0
    });
    operation!(follow_sender(receiver: &mut Receiving) -> u32 {
        u32::from(receiver.retire()) + u32::from(receiver.is_drained())
    });

    pub fn receive(command: u32, argument: u32) -> u32 {
        if command == 0 {
            return open_receiver(argument);
        }
        let (receiver, Rest { message, payload }) = (RECEIVER.filled(), REST.filled());
        match command {
            1 => dequeue(receiver, message),
            2 => copy_out(message, payload, argument),
            3 => free_received(receiver, message),
            #[cfg(feature = "wait")]
            4 => ready(receiver),
            #[cfg(feature = "wait")]
            5 => receiver_sleeps(receiver, argument),
            #[cfg(feature = "wait")]
            6 => answer(receiver),
            _ => follow_sender(receiver),
        }
    }
}
