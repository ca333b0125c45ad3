//! The inter-processor interrupt block of Zynq UltraScale+ MPSoC.
//!
//! How it works: each agent has a set of registers (UG1085 "Zynq UltraScale+ Device Technical Reference Manual", chapter
//! Interrupts, section Inter-Processor Interrupts; register names of UG1087, module IPI). Writing an agent's bit to our
//! `TRIG` sets our bit in that agent's `ISR`; our `OBS` shows it as long as it has not been cleared there. `ISR` is
//! cleared by writing ones. `IMR` shows what is masked; `IER` unmasks and `IDR` masks, both by writing ones. All is masked after
//! reset. An agent's interrupt is a level: high as long as a bit of its `ISR` is set that is not masked, so it is acknowledged
//! before the interrupt is done with, and configured as a level at the controller.
//! Each pair of agents has 32 bytes of request and 32 bytes of response in the message buffers; their order is that of all
//! software (embeddedsw, `XilinxProcessorIPLib/drivers/ipipsu`, and TF-A, `plat/xilinx/common/ipi.c`), as the table of UG1085
//! v2.1 differs.
//!
//! What it does not do: use the message buffers for channels. They carry a few words to an agent that shares no memory,
//! such as the platform management unit.
//!
//! Tested against a model only: QEMU 7.2 wires the triggers to nothing.

use super::DoorbellDevice;
use crate::registers::{Registers, before_device};

/// An agent's registers.
const TRIG: usize = 0x00;
const OBS: usize = 0x04;
const ISR: usize = 0x10;
const IMR: usize = 0x14;
const IER: usize = 0x18;
const IDR: usize = 0x1C;

/// Bytes of a request or a response in the message buffers.
pub const MESSAGE_BYTES: usize = 32;
/// Bytes of the message buffers of one sending agent.
const SENDER_BYTES: usize = 0x200;
/// Bytes for one pair of agents: request and response.
const PAIR_BYTES: usize = 2 * MESSAGE_BYTES;

/// Who can ring and be rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Agent {
    /// The Cortex-A53 cluster.
    Apu = 0,
    /// The first Cortex-R5F.
    Rpu0 = 8,
    /// The second Cortex-R5F.
    Rpu1 = 9,
    /// The first channel of the programmable logic.
    Pl0 = 24,
}

impl Agent {
    /// This agent's bit in `TRIG`, `OBS` and `ISR`.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Its place in the message buffers.
    const fn place(self) -> usize {
        match self {
            Agent::Rpu0 => 0,
            Agent::Rpu1 => 1,
            Agent::Apu => 2,
            Agent::Pl0 => 3,
        }
    }
}

/// Bits that name an agent, with those that [`Agent`] has no name for.
const AGENTS: u32 = 0x0F0F_0301;

/// One agent's end of the block. `R` are its registers. Writer of `TRIG`, `ISR`, `IER` and `IDR`: this agent.
#[derive(Debug)]
pub struct ZynqmpIpi<R> {
    registers: R,
    /// Agents that may interrupt us.
    peers: u32,
}

impl<R: Registers> ZynqmpIpi<R> {
    /// The end with these registers, for rings of `peers` (their bits). Masked until armed.
    pub fn new(registers: R, peers: u32) -> Self {
        registers.write_u32(IDR, AGENTS);
        Self { registers, peers: peers & AGENTS }
    }

    /// Whether an agent has not yet acknowledged our last ring.
    pub fn is_pending_at(&self, agent: Agent) -> bool {
        self.registers.read_u32(OBS) & agent.bit() != 0
    }
}

impl<R: Registers> DoorbellDevice for ZynqmpIpi<R> {
    /// `target` is the number of the agent's bit.
    fn ring(&self, target: u32) -> bool {
        let bit = 1u32.checked_shl(target).unwrap_or(0) & AGENTS;
        before_device();
        if bit != 0 {
            self.registers.write_u32(TRIG, bit);
        }
        bit != 0
    }

    fn take(&self) -> u32 {
        let rung = self.registers.read_u32(ISR) & self.peers;
        if rung != 0 {
            self.registers.write_u32(ISR, rung);
        }
        // The acknowledgement before the look at memory that follows it.
        before_device();
        rung
    }

    fn arm(&self) {
        self.registers.write_u32(IER, self.peers);
    }

    fn disarm(&self) {
        self.registers.write_u32(IDR, self.peers);
    }
}

/// What is masked at present, as bits of agents; for a report.
pub fn masked<R: Registers>(registers: &R) -> u32 {
    registers.read_u32(IMR)
}

/// The message buffers. `R` is the whole of them.
#[derive(Debug)]
pub struct Buffers<R>(pub R);

impl<R: Registers> Buffers<R> {
    /// Writes a request from `from` to `to`, before the ring. Writer of it: `from`.
    pub fn write_request(&self, from: Agent, to: Agent, words: &[u32; MESSAGE_BYTES / 4]) {
        self.write(from.place() * SENDER_BYTES + to.place() * PAIR_BYTES, words);
    }

    /// Reads the request that `from` wrote for `to`.
    pub fn read_request(&self, from: Agent, to: Agent) -> [u32; MESSAGE_BYTES / 4] {
        self.read(from.place() * SENDER_BYTES + to.place() * PAIR_BYTES)
    }

    /// Writes the answer of `to` to a request of `from`. Writer of it: `to`.
    pub fn write_response(&self, from: Agent, to: Agent, words: &[u32; MESSAGE_BYTES / 4]) {
        self.write(from.place() * SENDER_BYTES + to.place() * PAIR_BYTES + MESSAGE_BYTES, words);
    }

    /// Reads the answer of `to` to a request of `from`.
    pub fn read_response(&self, from: Agent, to: Agent) -> [u32; MESSAGE_BYTES / 4] {
        self.read(from.place() * SENDER_BYTES + to.place() * PAIR_BYTES + MESSAGE_BYTES)
    }

    fn write(&self, offset: usize, words: &[u32; MESSAGE_BYTES / 4]) {
        for (index, word) in words.iter().enumerate() {
            self.0.write_u32(offset + index * 4, *word);
        }
    }

    fn read(&self, offset: usize) -> [u32; MESSAGE_BYTES / 4] {
        core::array::from_fn(|index| self.0.read_u32(offset + index * 4))
    }
}

#[cfg(test)]
pub(crate) mod model;

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::model::Model;
    use super::*;
    use crate::doorbell::conformance::{Pair, check};

    #[test]
    fn it_is_a_bell() {
        let model = Model::default();
        check(&Pair {
            ringer: ZynqmpIpi::new(model.of(Agent::Apu), Agent::Rpu0.bit()),
            rung: ZynqmpIpi::new(model.of(Agent::Rpu0), Agent::Apu.bit()),
            target: Agent::Rpu0 as u32,
            told: Agent::Apu.bit(),
            interrupted: &|| model.interrupts(Agent::Rpu0),
        });
    }

    #[test]
    fn ringers_are_told_apart_and_a_stranger_does_not_interrupt() {
        let model = Model::default();
        let (apu, other) = (ZynqmpIpi::new(model.of(Agent::Apu), 0), ZynqmpIpi::new(model.of(Agent::Rpu1), 0));
        let stranger = ZynqmpIpi::new(model.of(Agent::Pl0), 0);
        let rung = ZynqmpIpi::new(model.of(Agent::Rpu0), Agent::Apu.bit() | Agent::Rpu1.bit());
        rung.arm();
        assert!(stranger.ring(Agent::Rpu0 as u32));
        assert!(!model.interrupts(Agent::Rpu0));
        assert!(apu.ring(8) && other.ring(8));
        assert!(apu.is_pending_at(Agent::Rpu0));
        assert_eq!(rung.take(), Agent::Apu.bit() | Agent::Rpu1.bit());
        assert!(!apu.is_pending_at(Agent::Rpu0));
        assert!(stranger.is_pending_at(Agent::Rpu0), "not ours to clear");
    }

    #[test]
    fn what_is_no_agent_is_not_rung() {
        let model = Model::default();
        let line = ZynqmpIpi::new(model.of(Agent::Apu), 0);
        assert!(!line.ring(1) && !line.ring(31) && !line.ring(32) && !line.ring(u32::MAX));
        assert!(model.isr.borrow().values().all(|v| *v == 0));
        assert_eq!(masked(&model.of(Agent::Apu)), AGENTS, "masked until armed");
    }

    /// The message buffers: plain memory of 32-bit words.
    struct Memory([Cell<u32>; 0x1000 / 4]);
    impl Registers for Memory {
        fn read_u32(&self, offset: usize) -> u32 {
            self.0[offset / 4].get()
        }
        fn write_u32(&self, offset: usize, value: u32) {
            self.0[offset / 4].set(value);
        }
    }

    #[test]
    fn each_pair_of_agents_has_a_buffer_of_its_own() {
        let buffers = Buffers(Memory(core::array::from_fn(|_| Cell::new(0))));
        let agents = [Agent::Apu, Agent::Rpu0, Agent::Rpu1, Agent::Pl0];
        let pairs = agents.iter().flat_map(|&from| agents.iter().map(move |&to| (from, to)));
        for (number, (from, to)) in pairs.clone().enumerate() {
            buffers.write_request(from, to, &[number as u32 * 2; 8]);
            buffers.write_response(from, to, &[number as u32 * 2 + 1; 8]);
        }
        for (number, (from, to)) in pairs.enumerate() {
            assert_eq!(buffers.read_request(from, to), [number as u32 * 2; 8]);
            assert_eq!(buffers.read_response(from, to), [number as u32 * 2 + 1; 8]);
        }
        assert_eq!(buffers.0.0[0x400 / 4].get(), 2, "UG1085: the APU's buffers begin at 0x400, first those for RPU0");
    }
}
