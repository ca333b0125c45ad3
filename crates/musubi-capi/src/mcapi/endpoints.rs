//! Endpoints for C: create, get, release, delete, attributes.

use alloc::vec::Vec;
use core::ffi::c_void;

use musubi_mcapi::EndpointId;
use musubi_mcapi::engine::{Outcome, RequestId};

use super::exports::export;
use super::node::{Block, NodeEngine, NodeLinks, ThreadNode, bound};
use super::port::cut_ms_max;
use super::requests::Goes;
use super::status::Status;
use super::waiting::{Begun, begin};
use crate::ffi::{bytes, given};

/// `MCAPI_PORT_ANY`.
const PORT_ANY: u32 = u32::MAX;
/// `MCAPI_ENDP_ATTR_MEMORY_TYPE`.
const ATTRIBUTE_MEMORY_TYPE: u32 = 5;
/// `MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT`.
const FAIL_ON_LIMIT: u32 = 0x0001_0000;
/// Largest value of an attribute, in bytes; longer ones have a wrong size.
pub(crate) const ATTRIBUTE_BYTES_MAX: usize = 64;
/// Longest that an answer about an attribute may take beyond what a link may be cut, milliseconds.
const ANSWER_MS_MAX: u32 = 2000;

/// The endpoint that a program names.
#[inline]
pub(crate) fn named(endpoint: u32) -> Result<EndpointId, Status> {
    EndpointId::from_bits(endpoint).ok_or(Status::EndpointInvalid)
}

/// Whether a blocking call at one of our endpoints fails rather than waits for memory.
#[cold]
pub(crate) fn fails_on_limit(bound: &ThreadNode, endpoint: EndpointId) -> Result<bool, Status> {
    let value = bound.with(|engine, links| {
        let request = engine.endpoint_attribute(endpoint, ATTRIBUTE_MEMORY_TYPE, 4, links)?;
        engine.take_outcome(request)
    })?;
    let Some(Ok(Outcome::Attribute(value))) = value else { return Ok(false) };
    Ok(value.try_into().is_ok_and(|value| u32::from_ne_bytes(value) & FAIL_ON_LIMIT != 0))
}

/// Waits for an engine's request; one whose time is over is given up.
pub(crate) fn outcome(bound: &ThreadNode, request: RequestId, timeout_ms: u32) -> Result<Outcome<Block>, Status> {
    let waited = bound.wait(timeout_ms, |engine, _| match engine.take_outcome(request) {
        Ok(None) => None,
        Ok(Some(outcome)) => Some(outcome.map_err(Status::from)),
        Err(error) => Some(Err(error.into())),
    });
    if waited.as_ref().err() == Some(&Status::Timeout) {
        bound.with(|engine, links| {
            engine.drop_request(request, links);
            Ok(())
        })?;
    }
    waited
}

/// The value of an attribute, asked for wherever it is; what cannot be reached in time is `unreachable`.
pub(crate) fn attribute(bound: &ThreadNode, request: RequestId, unreachable: Status) -> Result<Vec<u8>, Status> {
    let timeout_ms = cut_ms_max(&bound.node).saturating_add(ANSWER_MS_MAX).min(u32::MAX - 1);
    match outcome(bound, request, timeout_ms) {
        Ok(Outcome::Attribute(value)) => Ok(value),
        Ok(_) => Err(Status::General),
        Err(Status::Transmission | Status::Timeout) => Err(unreachable),
        Err(status) => Err(status),
    }
}

/// Writes an attribute's value where the program wants it.
///
/// # Safety
/// `to` is room for `size` bytes.
pub(crate) unsafe fn put(value: &[u8], to: *mut c_void, size: usize) -> Result<(), Status> {
    if value.len() != size {
        return Err(Status::AttributeSize);
    }
    // SAFETY: the caller's promise; the value is ours.
    unsafe { core::ptr::copy_nonoverlapping(value.as_ptr(), to.cast(), size) };
    Ok(())
}

export! {
    /// Creates an endpoint.
    fn mcapi_endpoint_create(port_id: u32) -> u32, else 0; {
        bound(|bound| {
            let port = (port_id != PORT_ANY).then_some(port_id);
            bound.with(|engine, links| engine.create_endpoint(port, links)).map(EndpointId::bits)
        })
    }

    /// Begins to get an endpoint.
    fn mcapi_endpoint_get_i(domain_id: u32, node_id: u32, port_id: u32, endpoint: *mut u32, request: *mut u32); {
        bound(|bound| {
            given(endpoint)?;
            let by = |engine: &mut NodeEngine, links: &mut NodeLinks| {
                Ok(Begun::Later(engine.get_endpoint((domain_id, node_id), port_id, links)?))
            };
            // SAFETY: the caller's promise: the place is the library's until the request has completed.
            unsafe { begin(bound, request, Goes::Endpoint { place: endpoint }, by) }
        })
    }

    /// Gets an endpoint as soon as it exists.
    fn mcapi_endpoint_get(domain_id: u32, node_id: u32, port_id: u32, timeout: u32) -> u32, else 0; {
        bound(|bound| {
            let request = bound.with(|engine, links| engine.get_endpoint((domain_id, node_id), port_id, links))?;
            match outcome(bound, request, timeout)? {
                Outcome::Endpoint(endpoint) => Ok(endpoint.bits()),
                _ => Err(Status::General),
            }
        })
    }

    /// Gives one get back.
    fn mcapi_endpoint_release(endpoint: u32); {
        bound(|bound| {
            let endpoint = named(endpoint)?;
            bound.with(|engine, links| engine.release_endpoint(endpoint, links))
        })
    }

    /// Deletes an endpoint.
    fn mcapi_endpoint_delete(endpoint: u32); {
        bound(|bound| {
            let endpoint = named(endpoint)?;
            bound.with(|engine, links| engine.delete_endpoint(endpoint, links))
        })
    }

    /// An attribute of an endpoint anywhere.
    fn mcapi_endpoint_get_attribute(endpoint: u32, attribute_num: u32, attribute: *mut c_void, attribute_size: usize); {
        bound(|bound| {
            let endpoint = named(endpoint)?;
            given(attribute)?;
            let request =
                bound.with(|engine, links| engine.endpoint_attribute(endpoint, attribute_num, attribute_size, links))?;
            let value = self::attribute(bound, request, Status::EndpointInvalid)?;
            // SAFETY: the caller's promise.
            unsafe { put(&value, attribute, attribute_size) }
        })
    }

    /// Sets an attribute of an endpoint of the node.
    fn mcapi_endpoint_set_attribute(endpoint: u32, attribute_num: u32, attribute: *const c_void,
        attribute_size: usize); {
        bound(|bound| {
            given(attribute)?;
            // SAFETY: the caller's promise; no attribute is longer, so the rest need not be there to be refused.
            let value = unsafe { bytes(attribute.cast(), attribute_size.min(ATTRIBUTE_BYTES_MAX), Status::AttributeSize) }?;
            let endpoint = named(endpoint)?;
            bound.with(|engine, _| engine.set_endpoint_attribute(endpoint, attribute_num, value))
        })
    }
}
