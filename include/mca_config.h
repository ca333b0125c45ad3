/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * mca_config.h: for programs that include it, as with the Multicore Association's own implementation. The limits are in
 * mcapi_impl_spec.h. */
#ifndef MCA_CONFIG_H
#define MCA_CONFIG_H

#include "mcapi.h"

#endif
