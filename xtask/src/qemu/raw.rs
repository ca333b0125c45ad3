//! A 32-bit ELF image as a plain file: the bytes of memory from a known address on, as a boot loader puts them there.
//!
//! How it works: what the program headers load, at their physical addresses; gaps are zero.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use object::read::elf::{ElfFile32, ProgramHeader as _};
use object::{Endianness, elf};

/// Most bytes of a plain file: an image that is larger has parts that lie apart.
const BYTES_MAX: usize = 64 << 20;

/// Writes the plain file beside the image and gives its path.
///
/// # Errors
/// If the image does not begin at `base` or is larger than [`BYTES_MAX`], or a file cannot be read or written.
pub fn write(image: &Path, base: u32) -> Result<PathBuf> {
    let bytes = std::fs::read(image).with_context(|| image.display().to_string())?;
    let plain = plain(&bytes, base).with_context(|| image.display().to_string())?;
    let path = image.with_extension("bin");
    std::fs::write(&path, plain).with_context(|| path.display().to_string())?;
    Ok(path)
}

fn plain(image: &[u8], base: u32) -> Result<Vec<u8>> {
    let file = ElfFile32::<Endianness>::parse(image)?;
    let endian = file.endian();
    let entry = file.elf_header().e_entry.get(endian);
    ensure!(entry == base, "the image is entered at {entry:#x}, not at {base:#x}");
    let mut plain = Vec::new();
    for header in file.elf_program_headers().iter().filter(|header| header.p_type(endian) == elf::PT_LOAD) {
        let part = header.data(endian, image).map_err(|()| anyhow::anyhow!("a part lies outside of the file"))?;
        if part.is_empty() {
            continue;
        }
        let from = header.p_paddr(endian).checked_sub(base).context("a part lies before the image")? as usize;
        let to = from + part.len();
        ensure!(to <= BYTES_MAX, "the image has parts that lie apart");
        plain.resize(plain.len().max(to), 0);
        plain[from..to].copy_from_slice(part);
    }
    ensure!(!plain.is_empty(), "nothing in the image is loaded");
    Ok(plain)
}
