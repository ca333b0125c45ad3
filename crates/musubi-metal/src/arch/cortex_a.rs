//! What a Cortex-A core wants to have set before its caches are on, by which core it is. Apart from the architecture, so that
//! the host tests it.
//!
//! How it works: MIDR tells the core and its revision. Each bit of the diagnostic register (CP15 c15, c0, 1) works around an
//! erratum of the Cortex-A9, on the core that sets it: so every core sets them, not the first one only. Bits and numbers are those of
//! U-Boot (`arch/arm/cpu/armv7/start.S`, CONFIG_ARM_ERRATA_*), of which it sets all five on i.MX6; revisions are those of Linux
//! (`arch/arm/Kconfig`, `arch/arm/mm/proc-v7.S`) and of barebox, which sets 761320, 794072 and 845369 on the r3p0 of Zynq.

/// Cortex-A9 and Cortex-A7 in MIDR's part number.
const CORTEX_A9: u32 = 0xC09;

/// ACTLR: this core takes part in coherence.
const SMP: u32 = 1 << 6;
/// ACTLR of the Cortex-A9: it broadcasts cache and translation maintenance (DDI 0388, clause 4.3.10). Other cores have no such bit.
const BROADCAST: u32 = 1;

/// First major revision without the erratum, and the erratum's bit: 751472 store buffer, 761320 full-line writes, 794072 a
/// short loop with DMB, 845369 streaming mode.
const BEFORE: [(u32, u32); 4] = [(3, 1 << 11), (4, 1 << 21), (16, 1 << 4), (16, 1 << 22)];
/// 743622, of major revision 2 only: a faulty hazard in the store buffer.
const OF_REVISION_2: u32 = 1 << 6;

/// Whether this is a Cortex-A9.
pub const fn is_a9(midr: u32) -> bool {
    midr >> 4 & 0xFFF == CORTEX_A9
}

/// Bits of ACTLR that a core needs to be coherent with its cluster: bit 6, and on the Cortex-A9 bit 0 too.
pub const fn coherence(midr: u32) -> u32 {
    if is_a9(midr) { SMP | BROADCAST } else { SMP }
}

/// Bits of the diagnostic register; 0 on a core that has no such errata.
pub fn diagnostics(midr: u32) -> u32 {
    if !is_a9(midr) {
        return 0;
    }
    let major = midr >> 20 & 0xF;
    let named = BEFORE.iter().filter(|(fixed_in, _)| major < *fixed_in).map(|(_, bit)| bit);
    named.fold(if major == 2 { OF_REVISION_2 } else { 0 }, |bits, bit| bits | bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A9_R2P10: u32 = 0x412F_C09A;
    const A9_R3P0: u32 = 0x413F_C090;
    const A9_R4P1: u32 = 0x414F_C091;
    const A7_R0P5: u32 = 0x410F_C075;

    #[test]
    fn an_i_mx6_has_all_five_work_arounds() {
        assert_eq!(diagnostics(A9_R2P10), 1 << 6 | 1 << 11 | 1 << 21 | 1 << 4 | 1 << 22);
    }

    #[test]
    fn later_revisions_keep_what_was_never_mended() {
        assert_eq!(diagnostics(A9_R3P0), 1 << 21 | 1 << 4 | 1 << 22);
        assert_eq!(diagnostics(A9_R4P1), 1 << 4 | 1 << 22);
    }

    #[test]
    fn a_cortex_a7_gets_bit_6_only() {
        assert_eq!((coherence(A7_R0P5), diagnostics(A7_R0P5)), (1 << 6, 0));
        assert_eq!(coherence(A9_R2P10), 1 << 6 | 1);
    }
}
