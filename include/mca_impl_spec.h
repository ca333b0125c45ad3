/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * mca_impl_spec.h: what Musubi chooses where the Multicore Association's interfaces leave it to the implementation. */
#ifndef MCA_IMPL_SPEC_H
#define MCA_IMPL_SPEC_H

/* A request: a number of the node that made it. 0 is never one. */
typedef unsigned int mca_request_t;

#endif
