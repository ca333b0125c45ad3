//! A control loop over scalar channels: node 1 controls the speed of the motor that is node 2.
//!
//! `control` runs both as threads, `control --node N` one of them; with `MUSUBI_SYSTEM` it runs on the machines of that
//! system. One channel carries the measured speed, 32 bits a period, the other the new voltage.
#![forbid(unsafe_code)]

use musubi_examples::{run, soon};
use musubi_mcapi::{Error, Node, ScalarReceiver, ScalarSender};

/// Periods that the loop runs.
const PERIODS: u32 = 2000;
/// The speed that is wanted, in thousandths of a turn a second.
const WANTED: i32 = 50_000;
/// Ports: the speed comes in at the controller's, the voltage at the motor's.
const SPEED: u32 = 1;
const VOLTAGE: u32 = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&[controller, motor])
}

/// A controller with a proportional and an integral part.
fn controller(node: &Node) -> Result<(), Error> {
    let (speeds, voltages) = join(node, SPEED, (2, VOLTAGE))?;
    let (mut sum, mut speed) = (0, 0);
    for _ in 0..PERIODS {
        speed = speeds.receive(soon())? as i32;
        let error = WANTED - speed;
        sum += error;
        let voltage = error / 4 + sum / 64;
        voltages.send(voltage as u32, soon())?;
    }
    println!("after {PERIODS} periods the speed is {speed}, wanted are {WANTED}");
    close(speeds, voltages)
}

/// A motor that follows its voltage with delay, and has friction.
fn motor(node: &Node) -> Result<(), Error> {
    let (voltages, speeds) = join(node, VOLTAGE, (1, SPEED))?;
    let mut speed = 0;
    for _ in 0..PERIODS {
        speeds.send(speed as u32, soon())?;
        let voltage = voltages.receive(soon())? as i32;
        speed += (2 * voltage - speed) / 16;
    }
    close(voltages, speeds)
}

type Ends = (ScalarReceiver<u32>, ScalarSender<u32>);

/// Both ends of a node: it receives at `port`, and sends to the other's. Each side connects the channel that it sends on.
fn join(node: &Node, port: u32, (other, other_port): (u32, u32)) -> Result<Ends, Error> {
    let (input, output) = (node.create_endpoint(Some(port))?, node.create_endpoint(None)?);
    let to = node.get_endpoint((0, other), other_port, soon())?;
    let mut receiver = ScalarReceiver::open(&input)?;
    node.connect_scalars(&output, &to)?.wait(soon())?;
    let mut sender = ScalarSender::open(&output)?;
    Ok((receiver.wait(soon())?, sender.wait(soon())?))
}

fn close(receiver: ScalarReceiver<u32>, sender: ScalarSender<u32>) -> Result<(), Error> {
    let (mut one, mut other) = (receiver.close()?, sender.close()?);
    one.wait(soon())?;
    other.wait(soon())
}
