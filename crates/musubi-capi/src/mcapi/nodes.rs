//! Nodes for C: initialise, finalise, who am I, attributes.

use core::ffi::{CStr, c_char, c_void};

use musubi_mcapi::limits::{DOMAIN_MAX, NODE_MAX, PORT_MAX};

use super::endpoints::{attribute, put};
use super::exports::export;
use super::node::{Node, bound};
use super::port::{counts, finalize, initialize, uncancelled};
use super::status::Status;
use crate::ffi::given;

/// `MCAPI_VERSION`.
pub const VERSION: u32 = 2015;
/// `MCA_ORG_ID_TBA`.
pub const ORGANIZATION: u32 = 3;
/// Tells a struct that was initialised from one that was not.
const MARK: u32 = 0x4D75_7375;
/// `MCAPI_NODE_ATTR_TYPE`, the only attribute.
const ATTRIBUTE_TYPE: u32 = 0;
/// `MCAPI_NODE_ATTR_TYPE_REGULAR`, its only value.
const TYPE_REGULAR: u32 = 0;
/// `MCAPI_DOMAIN_INVALID`, `MCAPI_NODE_INVALID`.
const INVALID: u32 = u32::MAX;

/// `impl_info_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Implementation {
    /// Name.
    pub implementation: *const c_char,
    /// Version.
    pub version: *const c_char,
}

// SAFETY: it points to constant text.
unsafe impl Sync for Implementation {}

static IMPLEMENTATION: Implementation =
    Implementation { implementation: c"Musubi".as_ptr(), version: VERSION_TEXT.as_ptr() };

const VERSION_TEXT: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(text) => text,
    Err(_) => c"",
};

/// `mcapi_info_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Info {
    /// [`VERSION`].
    pub mcapi_version: u32,
    /// [`ORGANIZATION`].
    pub organization_id: u32,
    /// Of the library.
    pub implementation_version: u32,
    /// Of the system.
    pub number_of_domains: u32,
    /// Of the node's domain.
    pub number_of_nodes: u32,
    /// That a node can have.
    pub number_of_ports: u32,
    /// Constant.
    pub impl_info: *const Implementation,
}

/// `mcapi_node_attributes_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Attributes {
    /// [`MARK`].
    pub mark: u32,
    /// `MCAPI_NODE_ATTR_TYPE`.
    pub kind: u32,
    /// 0.
    pub reserved: [u32; 6],
}

impl Info {
    fn of(node: &Node) -> Info {
        let (domains, nodes) = counts(node).unwrap_or((DOMAIN_MAX + 1, NODE_MAX + 1));
        Info {
            mcapi_version: VERSION,
            organization_id: ORGANIZATION,
            implementation_version: version_of(env!("CARGO_PKG_VERSION")),
            number_of_domains: domains,
            number_of_nodes: nodes,
            number_of_ports: PORT_MAX + 1,
            impl_info: &raw const IMPLEMENTATION,
        }
    }
}

/// Three digits of each part but the first, as MCAPI has versions, in hexadecimal: 1.2.3 is 0x1023.
fn version_of(text: &str) -> u32 {
    let mut parts = text.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let mut part = || parts.next().unwrap_or(0);
    part() << 12 | (part() & 0xFF) << 4 | part() & 0xF
}

/// Whether attributes are those of a node that can be.
///
/// # Safety
/// `attributes` is NULL or points to some.
unsafe fn check(attributes: *const Attributes) -> Result<(), Status> {
    if attributes.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise, and it is not NULL.
    let attributes = unsafe { attributes.read() };
    // All zeros, as programs have it that set such structs to zero, are the defaults.
    let is_one = attributes.mark == MARK || attributes.mark == 0 && attributes.reserved == [0; 6];
    if is_one && attributes.kind == TYPE_REGULAR { Ok(()) } else { Err(Status::Parameter) }
}

export! {
    /// Starts a node.
    fn mcapi_initialize(domain_id: u32, node_id: u32, mcapi_node_attributes: *const Attributes,
        init_parameters: *const c_void, mcapi_info: *mut Info); {
        // There are no parameters; the struct may be anything.
        let _ = init_parameters;
        given(mcapi_info)?;
        // SAFETY: the caller's promise.
        unsafe { check(mcapi_node_attributes) }?;
        let info = uncancelled(|| initialize(domain_id, node_id, Info::of))?;
        // SAFETY: the caller's promise, and it is not NULL.
        unsafe { mcapi_info.write(info) };
        Ok(())
    }

    /// Ends the node.
    fn mcapi_finalize(); { uncancelled(finalize) }

    /// The node's domain.
    fn mcapi_domain_id_get() -> u32, else INVALID; { bound(|bound| Ok(bound.id().domain())) }

    /// The node's number.
    fn mcapi_node_id_get() -> u32, else INVALID; { bound(|bound| Ok(bound.id().node())) }

    /// The default attributes.
    fn mcapi_node_init_attributes(mcapi_node_attributes: *mut Attributes); {
        given(mcapi_node_attributes)?;
        // SAFETY: the caller's promise, and it is not NULL.
        unsafe { mcapi_node_attributes.write(Attributes { mark: MARK, kind: TYPE_REGULAR, reserved: [0; 6] }) };
        Ok(())
    }

    /// Sets an attribute of a node to be.
    fn mcapi_node_set_attribute(mcapi_node_attributes: *mut Attributes, attribute_num: u32, attribute: *const c_void,
        attribute_size: usize); {
        given(mcapi_node_attributes)?;
        given(attribute)?;
        if attribute_num != ATTRIBUTE_TYPE {
            return Err(Status::AttributeNumber);
        }
        if attribute_size != size_of::<u32>() {
            return Err(Status::AttributeSize);
        }
        // SAFETY: the caller's promise, it is not NULL, and has the size.
        let value = unsafe { attribute.cast::<u32>().read_unaligned() };
        if value != TYPE_REGULAR {
            return Err(Status::AttributeValue);
        }
        // The value is the only one, so the struct has it already.
        Ok(())
    }

    /// An attribute of a node anywhere.
    fn mcapi_node_get_attribute(domain_id: u32, node_id: u32, attribute_num: u32, attribute: *mut c_void,
        attribute_size: usize); {
        bound(|bound| {
            given(attribute)?;
            let request = bound
                .with(|engine, links| engine.node_attribute((domain_id, node_id), attribute_num, attribute_size, links))?;
            let value = self::attribute(bound, request, Status::General)?;
            // SAFETY: the caller's promise.
            unsafe { put(&value, attribute, attribute_size) }
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_hexadecimal() {
        assert_eq!((super::version_of("1.2.3"), super::version_of("0.1.0")), (0x1023, 0x10));
    }
}
