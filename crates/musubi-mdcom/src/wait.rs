//! How long a call may wait: the paper's poll, time, or forever.

use core::time::Duration;

use musubi_core::channel::{Attachment, Deadline};

/// How long a call may wait.
///
/// ```
/// # use musubi_linux::{Options, Participant};
/// # let plan = musubi_config::load("../../examples/talk.toml".as_ref()).unwrap().leak();
/// # let instance = format!("doc-wait-{}", std::process::id());
/// # let at = |domain| Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(plan, domain) });
/// # let (control, panel) = (at("control")?, at("panel")?);
/// use std::time::Duration;
/// use musubi_mdcom::{Error, Mdcom, Wait};
///
/// # let _control = control;
/// let receiver = Mdcom::init(&panel).receiver("greetings")?;
/// assert_eq!(receiver.wait(Wait::Poll).unwrap_err(), Error::Timeout);
/// assert_eq!(receiver.wait(Wait::For(Duration::from_millis(1))).unwrap_err(), Error::Timeout);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Poll,
    /// For this long from now.
    For(Duration),
    /// Until this instant of the port's clock, in nanoseconds.
    Until(u64),
    /// As long as it takes.
    Forever,
}

impl Wait {
    pub(crate) fn from_deadline(deadline: Deadline) -> Wait {
        match deadline {
            Deadline::Poll => Wait::Poll,
            Deadline::At(ns) => Wait::Until(ns),
            Deadline::Forever => Wait::Forever,
        }
    }

    pub(crate) fn deadline(self, attachment: &impl Attachment) -> Deadline {
        match self {
            Wait::Poll => Deadline::Poll,
            Wait::Until(ns) => Deadline::At(ns),
            Wait::Forever => Deadline::Forever,
            Wait::For(time) => {
                let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                Deadline::At(attachment.now_ns().saturating_add(ns))
            }
        }
    }
}
