//! Counting semaphore and mutex whose waiters sleep, with deadlines.
//!
//! What you may rely on: who waits first is served first: a permit that is given while somebody waits goes to the longest
//! waiter and to nobody else, so nobody overtakes. At most `WAITERS` wait; one more is refused at once
//! ([`Error::Crowded`]). A wait ends at its deadline; if the permit comes at the same moment it counts. Giving never
//! waits for longer than a section of `WAITERS` steps and may be done by handlers.
//!
//! How it works: a ticket lock guards count and queue. A waiter has a place whose word turns to `GRANTED` when it is
//! served; it looks there without the lock, and sleeps by the program's [`Blocker`] in between. With [`Futures`] the same
//! queue serves tasks of an executor.
//!
//! What it does not do: inherit priorities. Order is by arrival only; keep what a mutex guards short.

use core::cell::UnsafeCell;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::replace;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::error::Error;
use crate::smp::blocking::{Blocker, Futures, Spin, Wake};
use crate::smp::{Locked, Processor, Ticket};
use crate::sync::{AtomicU32, Ordering, Site, acquire, array, constructor, release};

/// The place is nobody's.
const FREE: u32 = 0;
/// Somebody waits there.
const WAITING: u32 = 1;
/// Somebody has been served there and has not looked yet.
const GRANTED: u32 = 2;

/// A semaphore of the cores `P` with at most `WAITERS` waiters, up to 255, that sleep by `B`.
pub struct Semaphore<P: Processor, const WAITERS: usize, B: Wake = Spin<P>> {
    queue: Locked<Ticket<P>, Queue<B::Task, WAITERS>>,
    /// What became of each place. To WAITING and GRANTED by the holder of `queue`'s lock, from GRANTED to FREE by the one
    /// who was served.
    places: [AtomicU32; WAITERS],
}

/// Count and waiters.
struct Queue<T, const WAITERS: usize> {
    permits: u32,
    /// Places in the order of arrival; the first `length` count.
    order: [u8; WAITERS],
    length: usize,
    tasks: [Option<T>; WAITERS],
}

impl<T, const WAITERS: usize> Queue<T, WAITERS> {
    fn push(&mut self, place: usize, task: T) {
        self.order[self.length] = place as u8;
        self.length += 1;
        self.tasks[place] = Some(task);
    }

    /// Takes the waiter at this position out; gives its place and task.
    fn remove(&mut self, position: usize) -> Option<(usize, T)> {
        let place = usize::from(*self.order[..self.length].get(position)?);
        self.order.copy_within(position + 1..self.length, position);
        self.length -= 1;
        Some((place, self.tasks[place].take()?))
    }
}

/// A place in a semaphore's queue. Has to be polled until it is served or given up.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a place must be polled or abandoned"]
pub struct Place(usize);

/// What [`Semaphore::begin`] came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Begun {
    /// The permit was there.
    Taken,
    /// It has to be waited for.
    Queued(Place),
}

impl<P: Processor, const WAITERS: usize, B: Wake> Semaphore<P, WAITERS, B> {
    constructor! {
        /// A semaphore with so many permits.
        pub fn new(permits: u32) -> Self {
            const { assert!(WAITERS <= u8::MAX as usize) };
            let queue = Queue { permits, order: [0; WAITERS], length: 0, tasks: [const { None }; WAITERS] };
            Semaphore { queue: Locked::new(Ticket::new(), queue), places: array![AtomicU32::new(FREE); WAITERS] }
        }
    }

    /// Takes a permit if one is free.
    pub fn try_take(&self) -> bool {
        let mut queue = self.queue.lock();
        let free = queue.permits > 0;
        queue.permits -= u32::from(free);
        free
    }

    /// Gives a permit: to the longest waiter, or to the count. Beyond 2^32 - 1 permits nothing is added.
    pub fn give(&self) {
        let served = self.queue.with(|queue| {
            let Some((place, task)) = queue.remove(0) else {
                queue.permits = queue.permits.saturating_add(1);
                return None;
            };
            self.places[place].store(GRANTED, release(Site::PublishGrant));
            Some(task)
        });
        if let Some(task) = served {
            B::wake(&task);
        }
    }

    /// How many permits are free, and how many wait. Old at once.
    pub fn state(&self) -> (u32, usize) {
        self.queue.with(|queue| (queue.permits, queue.length))
    }

    /// Takes a permit or queues; [`Semaphore::poll`] then says when it is there. `task` is woken.
    ///
    /// # Errors
    /// [`Error::Crowded`] if all places are taken.
    pub fn begin(&self, task: B::Task) -> Result<Begun, Error> {
        let mut queue = self.queue.lock();
        if queue.permits > 0 {
            queue.permits -= 1;
            return Ok(Begun::Taken);
        }
        let free = |place: &AtomicU32| place.load(Ordering::Relaxed) == FREE;
        let place = self.places.iter().position(free).ok_or(Error::Crowded)?;
        self.places[place].store(WAITING, Ordering::Relaxed);
        queue.push(place, task);
        Ok(Begun::Queued(Place(place)))
    }

    /// Whether the permit is there.
    ///
    /// # Errors
    /// The place, to go on waiting.
    pub fn poll(&self, place: Place) -> Result<(), Place> {
        if self.places[place.0].load(acquire(Site::SeeGrant)) != GRANTED {
            return Err(place);
        }
        self.places[place.0].store(FREE, Ordering::Relaxed);
        Ok(())
    }

    /// Stops waiting. Gives whether the permit came at this very moment and is the caller's.
    pub fn abandon(&self, place: Place) -> bool {
        let removed = self.queue.with(|queue| {
            let position = queue.order[..queue.length].iter().position(|&waiter| usize::from(waiter) == place.0)?;
            queue.remove(position)
        });
        // Who is no longer queued has been served: both happen in one section. So nobody else writes the word now.
        self.places[place.0].store(FREE, Ordering::Relaxed);
        removed.is_none()
    }

    /// Lets another task be woken for this place.
    fn renew(&self, place: &Place, task: B::Task) {
        let former = self.queue.with(|queue| queue.tasks[place.0].as_mut().map(|known| replace(known, task)));
        drop(former);
    }
}

impl<P: Processor, const WAITERS: usize, B: Blocker> Semaphore<P, WAITERS, B> {
    /// Takes a permit, after all who came before.
    ///
    /// # Errors
    /// [`Error::Timeout`] at the deadline, on [`Processor::now_ns`]'s clock; [`Error::Crowded`] if too many wait.
    pub fn take(&self, deadline_ns: u64) -> Result<(), Error> {
        let Begun::Queued(mut place) = self.begin(B::current())? else { return Ok(()) };
        loop {
            match self.poll(place) {
                Ok(()) => return Ok(()),
                Err(waiting) => place = waiting,
            }
            if P::now_ns() >= deadline_ns {
                return if self.abandon(place) { Ok(()) } else { Err(Error::Timeout) };
            }
            B::sleep(deadline_ns);
        }
    }
}

impl<P: Processor, const WAITERS: usize> Semaphore<P, WAITERS, Futures> {
    /// Takes a permit as a future: after all who began before. A dropped future has given up.
    pub fn taking(&self) -> Taking<'_, P, WAITERS> {
        Taking { semaphore: self, place: None }
    }
}

/// Waits for a permit; see [`Semaphore::taking`].
#[must_use = "a future does nothing unless it is polled"]
pub struct Taking<'s, P: Processor, const WAITERS: usize> {
    semaphore: &'s Semaphore<P, WAITERS, Futures>,
    place: Option<Place>,
}

impl<P: Processor, const WAITERS: usize> Future for Taking<'_, P, WAITERS> {
    /// [`Error::Crowded`] if too many wait.
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let place = match self.place.take() {
            None => match self.semaphore.begin(context.waker().clone()) {
                Ok(Begun::Taken) => return Poll::Ready(Ok(())),
                Ok(Begun::Queued(place)) => place,
                Err(error) => return Poll::Ready(Err(error)),
            },
            Some(place) => {
                self.semaphore.renew(&place, context.waker().clone());
                place
            }
        };
        match self.semaphore.poll(place) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(place) => {
                self.place = Some(place);
                Poll::Pending
            }
        }
    }
}

impl<P: Processor, const WAITERS: usize> Drop for Taking<'_, P, WAITERS> {
    fn drop(&mut self) {
        if self.place.take().is_some_and(|place| self.semaphore.abandon(place)) {
            self.semaphore.give();
        }
    }
}

/// Data that one task uses at a time; the others sleep.
pub struct Mutex<P: Processor, T, const WAITERS: usize, B: Wake = Spin<P>> {
    turn: Semaphore<P, WAITERS, B>,
    data: UnsafeCell<T>,
}

// SAFETY: the one permit gives the data to one task at a time, and what it wrote is ordered before the next one's turn.
unsafe impl<P: Processor, T: Send, const WAITERS: usize, B: Wake> Sync for Mutex<P, T, WAITERS, B> {}

impl<P: Processor, T, const WAITERS: usize, B: Wake> Mutex<P, T, WAITERS, B> {
    constructor! {
        /// Puts `data` behind a mutex.
        pub fn new(data: T) -> Self {
            Mutex { turn: Semaphore::new(1), data: UnsafeCell::new(data) }
        }
    }

    /// Takes the data if nobody has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, P, T, WAITERS, B>> {
        self.turn.try_take().then(|| MutexGuard { mutex: self, data: PhantomData })
    }
}

impl<P: Processor, T, const WAITERS: usize, B: Blocker> Mutex<P, T, WAITERS, B> {
    /// Waits for the data. A task that has it already waits in vain.
    ///
    /// # Errors
    /// [`Error::Timeout`] at the deadline; [`Error::Crowded`] if too many wait.
    pub fn lock(&self, deadline_ns: u64) -> Result<MutexGuard<'_, P, T, WAITERS, B>, Error> {
        self.turn.take(deadline_ns)?;
        Ok(MutexGuard { mutex: self, data: PhantomData })
    }
}

impl<P: Processor, T, const WAITERS: usize> Mutex<P, T, WAITERS, Futures> {
    /// Waits for the data as a future.
    ///
    /// # Errors
    /// [`Error::Crowded`] if too many wait.
    pub async fn locked(&self) -> Result<MutexGuard<'_, P, T, WAITERS, Futures>, Error> {
        self.turn.taking().await?;
        Ok(MutexGuard { mutex: self, data: PhantomData })
    }
}

/// The data of a [`Mutex`] until this is dropped.
#[must_use = "the mutex is given back at once"]
pub struct MutexGuard<'m, P: Processor, T, const WAITERS: usize, B: Wake> {
    mutex: &'m Mutex<P, T, WAITERS, B>,
    /// Goes to other tasks as a `&mut T` does.
    data: PhantomData<&'m mut T>,
}

impl<P: Processor, T, const WAITERS: usize, B: Wake> Deref for MutexGuard<'_, P, T, WAITERS, B> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard stands for the one permit.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<P: Processor, T, const WAITERS: usize, B: Wake> DerefMut for MutexGuard<'_, P, T, WAITERS, B> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<P: Processor, T, const WAITERS: usize, B: Wake> Drop for MutexGuard<'_, P, T, WAITERS, B> {
    fn drop(&mut self) {
        self.mutex.turn.give();
    }
}
