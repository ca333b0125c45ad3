//! Why a call failed, and the text of a thread's last failure.
//!
//! What you may rely on: noting a failure allocates nothing; its text is made when it is asked for.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::ffi::Null;
use crate::mdcom::contract::abi::Refused;
use crate::mdcom::contract::status::{Status, status_of_core, status_of_port, text_of};

/// Why a call fails: the code, and what more there is to say.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    detail: Detail,
}

#[derive(Debug)]
enum Detail {
    None,
    Core(musubi_core::Error),
    Text(String),
}

impl Failure {
    pub(crate) fn saying(status: Status, text: &CStr) -> Failure {
        Failure::with_text(status, text.to_string_lossy())
    }

    pub(crate) fn with_text(status: Status, text: impl Into<String>) -> Failure {
        Failure { status, detail: Detail::Text(text.into()) }
    }

    fn into_text(self) -> CString {
        let text = match self.detail {
            Detail::None => return text_of(self.status as i32).to_owned(),
            Detail::Core(error) => error.to_string(),
            Detail::Text(text) => text,
        };
        // A NUL can come from a file name only; what follows it is not shown.
        let until_nul = text.split('\0').next().unwrap_or_default();
        CString::new(until_nul).unwrap_or_default()
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure { status, detail: Detail::None }
    }
}

impl From<Refused> for Failure {
    fn from(Refused(text): Refused) -> Failure {
        Failure::saying(Status::Argument, text)
    }
}

impl From<Null> for Failure {
    fn from(_: Null) -> Failure {
        Status::Argument.into()
    }
}

impl From<musubi_core::Error> for Failure {
    fn from(error: musubi_core::Error) -> Failure {
        Failure { status: status_of_core(&error), detail: Detail::Core(error) }
    }
}

impl From<musubi_linux::Error> for Failure {
    fn from(error: musubi_linux::Error) -> Failure {
        Failure::with_text(status_of_port(&error), error.to_string())
    }
}

impl From<musubi_config::Error> for Failure {
    fn from(error: musubi_config::Error) -> Failure {
        // `--system` is for commands; a C program has a field.
        let text = error.to_string().replace("name one with `--system FILE`", "set mdcom_config_t.description");
        Failure::with_text(Status::Description, text)
    }
}

impl From<musubi_config::Report> for Failure {
    fn from(report: musubi_config::Report) -> Failure {
        Failure::with_text(Status::Description, report.render(false))
    }
}

thread_local! {
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
    static LAST_TEXT: RefCell<CString> = RefCell::new(CString::default());
}

/// Calls `by`; a panic is [`Status::Internal`].
#[inline]
pub(crate) fn caught(by: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    catch_unwind(AssertUnwindSafe(by)).unwrap_or_else(|_| Err(Status::Internal.into()))
}

/// Notes a failure for [`last_error`] and gives its code.
pub(crate) fn note(failure: Failure) -> Status {
    let status = failure.status;
    // At the end of a thread its notes may be gone already; then there is nobody to read them.
    let _ = LAST.try_with(|last| *last.borrow_mut() = Some(failure));
    status
}

/// The text of this thread's last failure, valid until its next call.
pub(crate) fn last_error() -> *const c_char {
    catch_unwind(text_of_last).unwrap_or(c"".as_ptr())
}

fn text_of_last() -> *const c_char {
    let text = LAST_TEXT.try_with(|text| {
        let mut text = text.borrow_mut();
        if let Some(failure) = LAST.try_with(|last| last.borrow_mut().take()).ok().flatten() {
            *text = failure.into_text();
        }
        text.as_ptr()
    });
    text.unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_failure_of_a_thread_is_told_until_the_next() {
        note(musubi_core::Error::Throttled { retry_ns: 17 }.into());
        assert_eq!(text(), "held back by the regulator for 17 ns");
        assert_eq!(text(), "held back by the regulator for 17 ns");
        note(Failure::with_text(Status::System, "before\0after"));
        assert_eq!(text(), "before");
        assert_eq!(std::thread::spawn(text).join().unwrap(), "", "another thread's is its own");
    }

    fn text() -> String {
        // SAFETY: the text is valid until the next call of this thread.
        unsafe { CStr::from_ptr(last_error()) }.to_string_lossy().into_owned()
    }
}
