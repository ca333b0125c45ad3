//! The MDCOM interface over the port.

use musubi_mdcom::{Error, Mdcom, OpenError, Wait};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::stage::Stage;
use crate::{Failure, Wrapper, ensure, have, plan};

/// What the channel carries.
#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Sample {
    number: u64,
    values: [f32; 4],
}

pub fn values_travel_by_type<W: Wrapper>(stage: &mut Stage<'_, W>) -> Result<(), Failure> {
    let (master, remote) = (Mdcom::init(&stage.master), Mdcom::init(stage.remote()?));
    ensure!(master.sense_process("remote").ok() == Some(1), "the other participant is known by name");
    let sending = have!(master.sender_of::<Sample>("down"), "a channel is opened by name and type");
    let receiving = have!(remote.receiver_of::<Sample>(plan::DOWN), "and by number");
    let too_large = master.sender_of::<[u8; 33]>(plan::EVERY);
    ensure!(matches!(too_large, Err(OpenError::TypeDoesNotFit { .. })), "a larger type does not fit");
    ensure!(matches!(master.sender("nothing"), Err(OpenError::Unknown)), "an unknown name is refused");
    for number in 0..50 {
        let sample = Sample { number, values: [number as f32, 0.5, -1.0, f32::MAX] };
        let patience = Wait::For(core::time::Duration::from_nanos(crate::PATIENCE_NS));
        ensure!(sending.send(sample, patience).is_ok(), "a value is sent");
        ensure!(receiving.recv(patience) == Ok(sample), "and received as it was");
    }
    ensure!(receiving.recv(Wait::Poll) == Err(Error::Timeout), "nothing is left");
    // A block that is dropped goes back by itself.
    drop(sending.alloc(Wait::Poll));
    ensure!(sending.sense().free == plan::BLOCKS as u32, "every block has come back");
    Ok(())
}
