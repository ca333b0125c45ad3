//! A table that others update: the server tells where it is and then does nothing; the client writes lines of it by RDMA, many at
//! once, and says at the end that it has.
//!
//! Shows: memory that peers may write, and that this side only copies out of; a [`RemoteRegion`] that is sent like any
//! bytes; that a message behind writes finds them in place.
#![forbid(unsafe_code)]

use musubi_examples::soon;
use musubi_examples::vi::{self, Ending, ViArguments, check};
use musubi_vipl::owned::process::Nic;
use musubi_vipl::owned::{Permission, RemoteRegion, ViOptions, Work};

/// Lines of the table.
const LINES: usize = 256;
/// Writes that are posted at a time.
const POSTED: usize = 64;
const NAME: &[u8] = b"example table";

fn main() -> Ending {
    vi::run("Updates a table in the server's memory by RDMA writes.", 20_000, 128, |nic, arguments| {
        match arguments.is_server {
            true => serve(nic, arguments),
            false => ask(nic, arguments),
        }
    })
}

fn options(arguments: &ViArguments) -> Result<ViOptions, std::num::TryFromIntError> {
    let message_bytes_max = u32::try_from(arguments.bytes.max(RemoteRegion::BYTES))?;
    Ok(ViOptions { message_bytes_max, remote_write: true, ..ViOptions::default() })
}

fn serve(nic: &Nic, arguments: &ViArguments) -> Ending {
    let table = nic.share(LINES * arguments.bytes, Permission { write: true, read: false })?;
    let mut vi = nic.vi(options(arguments)?)?;
    // For the word that says that all is written.
    vi.receives().post(nic.region(1)?)?;
    let mut vi = vi::accept(&mut nic.listen(NAME)?, vi)?;
    vi.sends().post(Work::send(nic.register(table.remote().to_bytes())?))?;
    vi.sends().completed().wait(soon())?.done()?;
    let last = vi.receives().completed().wait(soon())?.done()?;
    check(last.immediate == Some(arguments.count as u32), || "is --count alike at both?".to_owned())?;
    let (mut line, mut expected) = (vec![0; arguments.bytes], vec![0; arguments.bytes]);
    for number in 0..LINES {
        table.read(number * arguments.bytes, &mut line)?;
        expected.fill(0);
        if let Some(update) = (number..arguments.count).step_by(LINES).next_back() {
            draw(&mut expected, update);
        }
        check(line == expected, || format!("line {number} is not as it should be"))?;
    }
    println!("{} updates of {} bytes, all {LINES} lines as they should be", arguments.count, arguments.bytes);
    // The client has said the last word, so it ends the connection.
    vi.ended().wait(soon())?;
    Ok(())
}

fn ask(nic: &Nic, arguments: &ViArguments) -> Ending {
    let ViArguments { count, bytes, .. } = *arguments;
    let mut vi = nic.vi(options(arguments)?)?;
    vi.receives().post(nic.region(RemoteRegion::BYTES)?)?;
    let mut vi = vi::connect(nic, arguments, NAME, vi)?;
    let told = vi.receives().completed().wait(soon())?.done()?;
    let table = RemoteRegion::from_bytes(&told.region).ok_or("the server did not say where its table is")?;
    check(table.len() == (LINES * bytes) as u64, || "is --bytes alike at both?".to_owned())?;
    for update in 0..count {
        // Its region is free when the write before has completed.
        let mut region = match update < POSTED {
            true => nic.region(bytes)?,
            false => vi.sends().completed().wait(soon())?.done()?.region,
        };
        draw(&mut region, update);
        let first = (update % LINES * bytes) as u64;
        let line = table.part(first..first + bytes as u64).ok_or("a line outside the table")?;
        vi.sends().post(Work::write(region, line))?;
    }
    vi.sends().post(Work::send(told.region).part(0..0).immediate(count as u32))?;
    for _ in 0..count.min(POSTED) + 1 {
        vi.sends().completed().wait(soon())?.done()?;
    }
    println!("{count} updates of {bytes} bytes written");
    Ok(())
}

/// Which update a line shows.
fn draw(line: &mut [u8], update: usize) {
    line.iter_mut().enumerate().for_each(|(place, byte)| *byte = (update + (place ^ update >> 8)) as u8);
}
