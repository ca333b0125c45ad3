//! Encodings of the jumps that are written over sites. Apart from the architectures, so that the host tests them.

/// RISC-V `jal t0, offset`; `None` if the offset is odd or beyond 1 MiB.
pub fn jal_t0(offset: isize) -> Option<u32> {
    if offset & 1 != 0 || !(-(1 << 20)..1 << 20).contains(&offset) {
        return None;
    }
    let bits = |from: u32, count: u32| (offset as u32 >> from) & ((1 << count) - 1);
    Some(bits(20, 1) << 31 | bits(1, 10) << 21 | bits(11, 1) << 20 | bits(12, 8) << 12 | 5 << 7 | 0x6F)
}

/// Armv8-A `b offset`; `None` if the offset is no multiple of 4 or beyond 128 MiB.
pub fn b(offset: isize) -> Option<u32> {
    let reaches = offset & 3 == 0 && (-(1 << 27)..1 << 27).contains(&offset);
    reaches.then_some(0x1400_0000 | (offset as u32 >> 2) & 0x03FF_FFFF)
}

/// ARMv7 (A32) `b offset`, from the instruction's own address; `None` if the offset is no multiple of 4 or beyond 32 MiB.
pub fn b_a32(offset: isize) -> Option<u32> {
    let from_pc = offset - 8;
    let reaches = offset & 3 == 0 && (-(1 << 25)..1 << 25).contains(&from_pc);
    reaches.then_some(0xEA00_0000 | (from_pc as u32 >> 2) & 0x00FF_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the GNU assembler's listing.
    #[test]
    fn jumps_are_encoded_as_by_the_assembler() {
        let jal = [(0x100, 0x1000_02EF), (-2, 0xFFFF_F2EF), (0xFFFFE, 0x7FFF_F2EF), (-0x10_0000, 0x8000_02EF)];
        jal.iter().for_each(|&(offset, expected)| assert_eq!(jal_t0(offset), Some(expected), "{offset:#x}"));
        assert_eq!([jal_t0(1 << 20), jal_t0(-(1 << 20) - 2), jal_t0(3)], [None; 3]);
        let branch = [(8, 0x1400_0002), (-4, 0x17FF_FFFF), ((1 << 27) - 4, 0x15FF_FFFF), (-(1 << 27), 0x1600_0000)];
        branch.iter().for_each(|&(offset, expected)| assert_eq!(b(offset), Some(expected), "{offset:#x}"));
        let a32 = [(8, 0xEA00_0000), (0, 0xEAFF_FFFE), (0x100, 0xEA00_003E), (-0x100_0000, 0xEABF_FFFE)];
        a32.iter().for_each(|&(offset, expected)| assert_eq!(b_a32(offset), Some(expected), "{offset:#x}"));
        assert_eq!([b_a32((1 << 25) + 8), b_a32(-(1 << 25) + 4), b_a32(2)], [None; 3]);
        assert_eq!([b(1 << 27), b(-(1 << 27) - 4), b(2)], [None; 3]);
    }
}
