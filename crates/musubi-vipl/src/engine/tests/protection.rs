//! Tags and regions, against a list that is looked through.

use super::*;
use proptest::prelude::*;

const FEW: Limits = Limits { regions: 3, tags: 2, region_bytes: 100, registered_bytes: 250, ..Limits::DEFAULT };

fn permits(tag: TagHandle) -> MemoryAttributes {
    MemoryAttributes { tag, remote_write: false, remote_read: false }
}

#[test]
fn bounds_are_exact_and_never_overflow() {
    let mut protection = Protection::new(&FEW, 0);
    let tag = protection.create_tag().unwrap();
    let top = protection.register(u64::MAX - 9, 10, permits(tag)).unwrap();
    let handle = protection.register(1000, 100, permits(tag)).unwrap();
    let ok = |handle, address, bytes| protection.check(tag, Access::Local, handle, address, bytes).is_ok();
    assert!(ok(handle, 1000, 100) && ok(handle, 1099, 1) && ok(handle, 1050, 50));
    assert!(!ok(handle, 999, 1) && !ok(handle, 1000, 101) && !ok(handle, 1099, 2) && !ok(handle, 1100, 1));
    assert!(ok(top, u64::MAX, 1) && ok(top, u64::MAX - 9, 10));
    assert!(!ok(top, u64::MAX, 2) && !ok(top, u64::MAX - 9, 11) && !ok(top, 0, 1));
    assert!(ok(MemoryHandle(77), 5, 0), "no bytes");
}

#[test]
fn limits_hold_and_what_is_given_up_counts_no_more() {
    let mut protection = Protection::new(&FEW, 0);
    let (tag, _other) = (protection.create_tag().unwrap(), protection.create_tag().unwrap());
    assert_eq!(protection.create_tag(), Err(RegistrationError::Resource));
    assert_eq!(protection.register(1, 101, permits(tag)), Err(RegistrationError::Resource), "one region");
    let handles = [100, 100].map(|bytes| protection.register(1, bytes, permits(tag)).unwrap());
    assert_ne!(handles[0], handles[1], "each registration has its own");
    assert_eq!(protection.register(1, 51, permits(tag)), Err(RegistrationError::Resource), "all together");
    protection.register(1, 50, permits(tag)).unwrap();
    assert_eq!(protection.register(1, 1, permits(tag)), Err(RegistrationError::Resource), "bytes and regions");
    protection.deregister(1, handles[0]).unwrap();
    assert_eq!(protection.deregister(1, handles[0]), Err(RegistrationError::Parameter));
    let again = protection.register(1, 100, permits(tag)).unwrap();
    assert_ne!(again, handles[0]);
    assert!(protection.check(tag, Access::Local, handles[0], 1, 1).is_err(), "given up");
    assert!(protection.check(tag, Access::Local, again, 1, 1).is_ok());
}

#[test]
fn handles_are_looked_up_and_never_followed() {
    let mut protection = Protection::new(&FEW, 0);
    let tag = protection.create_tag().unwrap();
    let handle = protection.register(1000, 10, permits(tag)).unwrap();
    for made_up in [0, 1, handle.0 + 1, handle.0 ^ (1 << 31), u32::MAX] {
        let made_up = MemoryHandle(made_up);
        assert!(protection.check(tag, Access::Local, made_up, 1000, 1).is_err(), "{made_up:?}");
        assert_eq!(protection.deregister(1000, made_up), Err(RegistrationError::Parameter));
        assert_eq!(protection.attributes(1000, made_up), Err(RegistrationError::Parameter));
    }
    assert_eq!(protection.deregister(1001, handle), Err(RegistrationError::Parameter), "another address");
    assert_eq!(protection.attributes(1001, handle), Err(RegistrationError::Parameter));
    for (address, bytes) in [(0, 1), (1, 0), (u64::MAX, 2)] {
        assert_eq!(protection.register(address, bytes, permits(tag)), Err(RegistrationError::Parameter));
    }
}

#[test]
fn handles_of_another_nic_and_of_the_last_use_do_not_fit() {
    let [mut one, mut other] = [1, 2].map(|nic| Protection::new(&FEW, nic));
    let tags = [one.create_tag().unwrap(), other.create_tag().unwrap()];
    let handles = [one.register(1, 9, permits(tags[0])).unwrap(), other.register(1, 9, permits(tags[1])).unwrap()];
    assert!(tags[0] != tags[1] && handles[0] != handles[1]);
    assert!(one.check(tags[0], Access::Local, handles[1], 1, 1).is_err());
    assert_eq!(one.use_tag(tags[1]), Err(RegistrationError::Tag));
    // The longest unused place comes first, so a handle stays refused as long as may be.
    let more = [(); 2].map(|()| one.register(1, 9, permits(tags[0])).unwrap());
    more.iter().for_each(|handle| one.deregister(1, *handle).unwrap());
    let again = one.register(1, 9, permits(tags[0])).unwrap();
    assert_eq!((again.0 ^ more[0].0) & 0xf_ffff, 0, "the place that was given up first");
}

#[test]
fn a_tag_in_use_stays() {
    let mut protection = Protection::new(&FEW, 0);
    let (tag, other) = (protection.create_tag().unwrap(), protection.create_tag().unwrap());
    let handle = protection.register(1000, 10, permits(tag)).unwrap();
    assert_eq!(protection.destroy_tag(tag), Err(RegistrationError::Resource));
    assert!(protection.check(other, Access::Local, handle, 1000, 1).is_err());
    protection.set_attributes(1000, handle, permits(other)).unwrap();
    assert!(protection.check(other, Access::Local, handle, 1000, 1).is_ok());
    protection.use_tag(tag).unwrap();
    assert_eq!(protection.destroy_tag(tag), Err(RegistrationError::Resource), "a VI has it");
    protection.leave_tag(tag);
    protection.destroy_tag(tag).unwrap();
    assert_eq!(protection.destroy_tag(tag), Err(RegistrationError::Tag));
    assert_eq!(protection.use_tag(tag), Err(RegistrationError::Tag));
    assert_eq!(protection.register(1, 1, permits(tag)), Err(RegistrationError::Tag));
    assert_eq!(protection.set_attributes(1000, handle, permits(tag)), Err(RegistrationError::Tag));
    assert_ne!(protection.create_tag().unwrap(), tag, "a name of its own");
    assert_eq!(protection.destroy_tag(TagHandle(0)), Err(RegistrationError::Tag));
}

#[test]
fn each_access_needs_its_own_permission() {
    let mut protection = Protection::new(&FEW, 0);
    let tag = protection.create_tag().unwrap();
    for (remote_write, remote_read) in [(false, false), (false, true), (true, false), (true, true)] {
        let attributes = MemoryAttributes { tag, remote_write, remote_read };
        let handle = protection.register(1000, 10, attributes).unwrap();
        assert_eq!(protection.attributes(1000, handle), Ok(attributes));
        let ok = |access| protection.check(tag, access, handle, 1000, 10).is_ok();
        let found = (ok(Access::Local), ok(Access::RemoteWrite), ok(Access::RemoteRead));
        assert_eq!(found, (true, remote_write, remote_read));
        protection.deregister(1000, handle).unwrap();
    }
}

proptest! {
    #[test]
    fn agrees_with_a_list(
        regions in prop::collection::vec((1..60u64, 1..60u64, any::<bool>()), 1..3),
        checks in prop::collection::vec((0..3usize, 0..130u64, 0..130u32, any::<bool>()), 1..40),
    ) {
        let mut protection = Protection::new(&FEW, 0);
        let tag = protection.create_tag().unwrap();
        let handles: Vec<MemoryHandle> = regions
            .iter()
            .map(|&(address, bytes, remote_write)| {
                protection.register(address, bytes, MemoryAttributes { remote_write, ..permits(tag) }).unwrap()
            })
            .collect();
        for (index, address, bytes, is_remote) in checks {
            let (handle, access) =
                (handles.get(index).copied().unwrap_or_default(), if is_remote { Access::RemoteWrite } else { Access::Local });
            let expected = bytes == 0
                || regions.get(index).is_some_and(|&(first, length, remote_write)| {
                    (address..address + u64::from(bytes)).all(|byte| byte >= first && byte < first + length)
                        && (!is_remote || remote_write)
                });
            prop_assert_eq!(protection.check(tag, access, handle, address, bytes).is_ok(), expected);
        }
    }
}
