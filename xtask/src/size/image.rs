//! Sections and symbols of a linked image.

use std::path::Path;

use anyhow::{Context as _, Result};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, elf};

/// Sections that hold the channels' own memory.
const CHANNELS: &str = ".channels";

/// Bytes of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// What lies in flash: instructions, constants, and the initial values of RAM.
    pub code: u64,
    /// RAM besides the channels' own memory.
    pub ram: u64,
    /// The channels' own memory.
    pub channels: u64,
}

impl Size {
    /// What this image has more than another one.
    pub fn beyond(self, other: Self) -> Self {
        Self {
            code: self.code.saturating_sub(other.code),
            ram: self.ram.saturating_sub(other.ram),
            channels: self.channels.saturating_sub(other.channels),
        }
    }
}

/// A linked image's bytes.
pub struct Image {
    bytes: Vec<u8>,
}

impl Image {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { bytes })
    }

    /// Its size.
    ///
    /// # Errors
    /// If it is no object file.
    pub fn size(&self) -> Result<Size> {
        let file = object::File::parse(&*self.bytes)?;
        let mut size = Size::default();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            let bytes = section.size();
            if !sh_flags.contains(elf::SHF_ALLOC) {
                continue;
            }
            let is_empty_at_first = section.kind() == object::SectionKind::UninitializedData;
            match section.name()? {
                CHANNELS => size.channels += bytes,
                _ if is_empty_at_first => size.ram += bytes,
                _ if sh_flags.contains(elf::SHF_WRITE) => (size.code, size.ram) = (size.code + bytes, size.ram + bytes),
                _ => size.code += bytes,
            }
        }
        Ok(size)
    }

    /// Bytes of the function of this name, or whose path ends in it (`ticket::Ticket<P,W>::wait` by `Ticket` and `wait`).
    ///
    /// # Errors
    /// If it is no object file, or has no such function.
    pub fn function(&self, parts: &[&str]) -> Result<u64> {
        let file = object::File::parse(&*self.bytes)?;
        let names_it = |name: &str| parts.iter().all(|part| name.contains(part));
        let found = file.symbols().find(|s| s.kind() == object::SymbolKind::Text && s.name().is_ok_and(names_it));
        found.map(|symbol| symbol.size()).with_context(|| format!("the image has no function {}", parts.join(" ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_what_it_adds() {
        let (all, base) = (Size { code: 100, ram: 10, channels: 64 }, Size { code: 40, ram: 10, channels: 0 });
        assert_eq!(all.beyond(base), Size { code: 60, ram: 0, channels: 64 });
    }

    #[test]
    fn what_is_no_image_is_refused() {
        assert!(Image { bytes: b"nothing".to_vec() }.size().is_err());
    }

    #[test]
    fn this_program_has_code_and_no_channels() {
        let image = Image::read(&std::env::current_exe().unwrap()).unwrap();
        let size = image.size().unwrap();
        assert!(size.code > 100_000 && size.ram > 0 && size.channels == 0, "{size:?}");
        assert!(image.function(&["no such function"]).is_err());
    }
}
