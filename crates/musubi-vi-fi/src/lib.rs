//! A libfabric provider over VIs: `fi_prov_ini` of `libvi-fi.so`.
//!
//! What you may rely on: docs/libfabric.md says which objects and calls there are; every other call is answered with
//! `-FI_ENOSYS`. No panic crosses into C.
//!
//! How it works: a fabric is an opened NIC ([`fabric`]), a domain a protection tag of it, an active endpoint a VI
//! ([`endpoint`], [`transfers`], [`connections`]), a passive one a thread that waits for callers ([`passive`]), a completion queue a VI's ([`completions`]).
//! [`abi`] has libfabric's structures, [`object`] what a `fid` is, [`info`] what `fi_getinfo` answers.
//!
//! What it does not do: decide anything about VIs; datagrams, tagged messages and atomics, which libfabric's `ofi_rxm` makes of this.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("libfabric's structures are declared for 64 bits");

mod abi;
mod addresses;
mod codes;
mod completions;
mod connections;
mod domain;
mod endpoint;
mod events;
mod fabric;
mod info;
mod memory;
mod object;
mod opening;
mod options;
mod passive;
mod provider;
mod transfers;
mod waiting;
mod work;
