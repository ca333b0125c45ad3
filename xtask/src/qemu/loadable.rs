//! Whether a Cortex-R5F's image is one that a chip's loaders take: Linux's remoteproc and the first stage boot loader of ZynqMP.
//!
//! What you may rely on: known from their sources, not tried with them: `drivers/remoteproc/xlnx_r5_remoteproc.c` (the core starts in its
//! tightly coupled memory; each part must lie in that or in memory that the devicetree gives it), `remoteproc_elf_loader.c` (parts by
//! physical address; the section `.resource_table` has version 1 and two reserved words of 0).
//!
//! How it works: [`check`] reads the ELF file; [`faults`] judges what it says, so that it can be tried without one.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use object::read::elf::{ElfFile32, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, elf};

/// The first bank of the core's own memory, and what a board's devicetree gives it (docs/boards.md).
const OWN: Range<u64> = 0..0x1_0000;
const GIVEN: Range<u64> = 0x3E00_0000..0x3F00_0000;
/// Version, number of entries, two reserved words.
const TABLE_BYTES: usize = 16;

/// Refuses an image that a loader would refuse, or that would not start.
///
/// # Errors
/// With all that is wrong.
pub fn check(image: &Path) -> Result<()> {
    let bytes = std::fs::read(image).with_context(|| image.display().to_string())?;
    let file = ElfFile32::<Endianness>::parse(&*bytes)?;
    let endian = file.endian();
    let loaded = file.elf_program_headers().iter().filter(|header| header.p_type(endian) == elf::PT_LOAD);
    let parts: Vec<Range<u64>> = loaded
        .filter(|header| header.p_memsz(endian) > 0)
        .map(|header| {
            let from = u64::from(header.p_paddr(endian));
            from..from + u64::from(header.p_memsz(endian))
        })
        .collect();
    let table = file.section_by_name(".resource_table").and_then(|section| section.data().ok());
    let faults = faults(file.entry(), &parts, table);
    ensure!(faults.is_empty(), "{} cannot be loaded on a chip: {}", image.display(), faults.join("; "));
    Ok(())
}

/// What is wrong with an image of this entry, these parts and this table.
fn faults(entry: u64, parts: &[Range<u64>], table: Option<&[u8]>) -> Vec<String> {
    let mut faults = Vec::new();
    if entry != 0 {
        faults.push(format!("it is entered at {entry:#x}, where the core does not start"));
    }
    if !parts.iter().any(|part| part.contains(&entry)) {
        faults.push("nothing lies where it is entered".into());
    }
    let lies =
        |part: &Range<u64>| [OWN, GIVEN].iter().any(|memory| memory.start <= part.start && part.end <= memory.end);
    faults.extend(parts.iter().filter(|part| !lies(part)).map(|part| format!("{part:#x?} is not the core's memory")));
    let word = |table: &[u8], at: usize| {
        table.get(at..at + 4).map(|word| u32::from_le_bytes(word.try_into().unwrap_or_default()))
    };
    let is_table = |table: &[u8]| {
        table.len() >= TABLE_BYTES && [0, 8, 12].map(|at| word(table, at)) == [Some(1), Some(0), Some(0)]
    };
    if !table.is_some_and(is_table) {
        faults.push("it has no resource table of version 1".into());
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [u8; 16] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn vectors_at_0_and_the_rest_in_its_memory_is_loadable() {
        let found = faults(0, &[0..64, 0x3E00_0000..0x3E01_0000], Some(&TABLE));
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn an_image_that_is_entered_in_ddr_does_not_start() {
        let found = faults(0x3E00_0000, &[0..64, 0x3E00_0000..0x3E01_0000], Some(&TABLE));
        assert!(found.len() == 1 && found[0].contains("does not start"), "{found:?}");
    }

    #[test]
    fn parts_elsewhere_and_a_table_of_another_version_are_refused() {
        let mut other = TABLE;
        other[0] = 2;
        let found = faults(0, &[0..64, 0x3EFF_0000..0x3F00_0001, 0..0x1_0001], Some(&other));
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(faults(0, &[0..64, 64..128], None).len(), 1);
        assert_eq!(faults(0, &[0..64, 64..128], Some(&TABLE[..12])).len(), 1);
    }
}
