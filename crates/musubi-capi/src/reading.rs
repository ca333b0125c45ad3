//! Reading the description file.

use std::path::Path;

/// A `musubi_config::Reader` that calls no function of the C library by a name that programs use for their own.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let bytes = musubi_linux::descriptor::read_file(path, usize::try_from(bytes_max).unwrap_or(usize::MAX));
    bytes.map_err(|error| format!("cannot read: {error}"))
}
