//! A device's registers, as drivers see them: reads and writes of 8, 16 and 32 bits at offsets.
//!
//! What you may rely on: each call is one access of exactly that width, neither repeated, merged nor left out, in
//! program order with other register accesses of this core. An offset outside the window or not aligned to its width is
//! a bug of ours and panics before it touches the bus.
//!
//! How it works: drivers (`doorbell`, `hwlock`, `interrupt`) are generic over [`Registers`]. On a target it is a
//! [`Window`] of device memory; in tests it is a model of the device, written from its reference manual.
//!
//! What it does not do: order memory against the device. A driver that publishes data before it writes a register asks
//! for that itself ([`before_device`]).

/// Registers of one device. `&self`: hardware does not care who writes; a driver says which words have one writer.
///
/// Many devices have registers of 32 bits only, so a model of one need not say more: the widths that a device does not have
/// panic, as a driver that asks for them is wrong.
pub trait Registers {
    /// Reads 8 bits at a byte offset.
    fn read_u8(&self, offset: usize) -> u8 {
        words_only(offset)
    }
    /// Reads 16 bits at a byte offset.
    fn read_u16(&self, offset: usize) -> u16 {
        words_only(offset)
    }
    /// Reads 32 bits at a byte offset.
    fn read_u32(&self, offset: usize) -> u32;
    /// Writes 8 bits at a byte offset.
    fn write_u8(&self, offset: usize, _value: u8) {
        words_only(offset)
    }
    /// Writes 16 bits at a byte offset.
    fn write_u16(&self, offset: usize, _value: u16) {
        words_only(offset)
    }
    /// Writes 32 bits at a byte offset.
    fn write_u32(&self, offset: usize, value: u32);
}

#[cold]
fn words_only(offset: usize) -> ! {
    panic!("the device has registers of 32 bits only; asked for another width at {offset:#x}")
}

impl<R: Registers> Registers for &R {
    fn read_u8(&self, offset: usize) -> u8 {
        (**self).read_u8(offset)
    }
    fn read_u16(&self, offset: usize) -> u16 {
        (**self).read_u16(offset)
    }
    fn read_u32(&self, offset: usize) -> u32 {
        (**self).read_u32(offset)
    }
    fn write_u8(&self, offset: usize, value: u8) {
        (**self).write_u8(offset, value);
    }
    fn write_u16(&self, offset: usize, value: u16) {
        (**self).write_u16(offset, value);
    }
    fn write_u32(&self, offset: usize, value: u32) {
        (**self).write_u32(offset, value);
    }
}

/// Makes what this core wrote to memory visible to everybody before its next write to a device.
#[inline(always)]
pub fn before_device() {
    #[cfg(target_os = "none")]
    crate::arch::before_device();
    // On the host, devices are models, and threads stand for cores.
    #[cfg(not(target_os = "none"))]
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
}

/// A window of device memory.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    base: usize,
    bytes: usize,
}

impl Window {
    /// The window of `bytes` bytes at address `base`.
    ///
    /// # Safety
    /// As long as the program runs, the addresses are mapped as device memory of a device whose registers may be read
    /// and written at any width that its driver uses, without effect on memory that Rust knows of.
    pub const unsafe fn new(base: usize, bytes: usize) -> Self {
        Window { base, bytes }
    }

    /// Address of the access, checked.
    #[inline(always)]
    fn at<T>(&self, offset: usize) -> *mut T {
        let width = size_of::<T>();
        assert!(offset.is_multiple_of(width) && width <= self.bytes && offset <= self.bytes - width);
        core::ptr::with_exposed_provenance_mut(self.base + offset)
    }

    #[inline(always)]
    fn read<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: `at` checked that the access is aligned and inside the window, whose maker promised a readable device.
        unsafe { self.at::<T>(offset).read_volatile() }
    }

    #[inline(always)]
    fn write<T: Copy>(&self, offset: usize, value: T) {
        // SAFETY: as in `read`; a write has no effect on memory that Rust knows of, by the maker's promise.
        unsafe { self.at::<T>(offset).write_volatile(value) }
    }
}

impl Registers for Window {
    #[inline(always)]
    fn read_u8(&self, offset: usize) -> u8 {
        self.read(offset)
    }
    #[inline(always)]
    fn read_u16(&self, offset: usize) -> u16 {
        self.read(offset)
    }
    #[inline(always)]
    fn read_u32(&self, offset: usize) -> u32 {
        self.read(offset)
    }
    #[inline(always)]
    fn write_u8(&self, offset: usize, value: u8) {
        self.write(offset, value);
    }
    #[inline(always)]
    fn write_u16(&self, offset: usize, value: u16) {
        self.write(offset, value);
    }
    #[inline(always)]
    fn write_u32(&self, offset: usize, value: u32) {
        self.write(offset, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_of_words_has_no_other_width() {
        struct Words;
        impl Registers for Words {
            fn read_u32(&self, offset: usize) -> u32 {
                offset as u32
            }
            fn write_u32(&self, _: usize, _: u32) {}
        }
        assert_eq!(Words.read_u32(8), 8);
        let narrow: [fn(); 4] = [
            || assert_eq!(Words.read_u8(4), 0),
            || assert_eq!(Words.read_u16(4), 0),
            || Words.write_u8(4, 1),
            || Words.write_u16(4, 1),
        ];
        assert!(narrow.iter().all(|access| std::panic::catch_unwind(access).is_err()));
    }

    #[test]
    fn a_window_reads_what_it_wrote_at_each_width() {
        let memory = [core::cell::UnsafeCell::new(0u64), core::cell::UnsafeCell::new(0u64)];
        // SAFETY: the memory outlives the window and is touched through the window only.
        let window = unsafe { Window::new(memory.as_ptr().expose_provenance(), 16) };
        window.write_u32(4, 0x1122_3344);
        window.write_u8(8, 0x55);
        window.write_u16(14, 0x6677);
        assert_eq!((window.read_u16(4), window.read_u8(7)), (0x3344, 0x11));
        assert_eq!((window.read_u32(8), window.read_u16(14)), (0x55, 0x6677));
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn an_access_outside_is_our_bug() {
        // SAFETY: nothing is accessed, as the check comes first.
        unsafe { Window::new(0x1000, 4) }.read_u32(4);
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn an_unaligned_access_is_our_bug() {
        // SAFETY: nothing is accessed, as the check comes first.
        unsafe { Window::new(0x1000, 8) }.read_u32(2);
    }
}
