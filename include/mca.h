/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * mca.h: types and constants that the interfaces of the Multicore Association share. */
#ifndef MCA_H
#define MCA_H

#include <stddef.h>
#include <stdint.h> /* for programs that expect it */

#include "mca_impl_spec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int mca_int_t;
typedef char mca_int8_t;
typedef short mca_int16_t;
typedef int mca_int32_t;
typedef long long mca_int64_t;
typedef unsigned int mca_uint_t;
typedef unsigned char mca_uint8_t;
typedef unsigned short mca_uint16_t;
typedef unsigned int mca_uint32_t;
typedef unsigned long long mca_uint64_t;
typedef unsigned char mca_boolean_t;
typedef unsigned int mca_domain_t;
typedef unsigned int mca_node_t;
typedef unsigned int mca_status_t;
typedef unsigned int mca_timeout_t;

#define MCA_TRUE 1
#define MCA_FALSE 0
#define MCA_NULL 0
#define MCA_INFINITE (~0u)

/* Directions of parameters. */
#ifndef MCA_IN
#define MCA_IN const
#endif
#ifndef MCA_OUT
#define MCA_OUT
#endif

/* Alignment that buffers like best: one cache line. No function needs it. */
#ifndef MCA_DECL_ALIGNED
#if defined(__GNUC__)
#define MCA_DECL_ALIGNED __attribute__((aligned(64)))
#else
#define MCA_DECL_ALIGNED
#endif
#endif

/* Organisations. */
#define MCA_ORG_ID_PSI 0
#define MCA_ORG_ID_FSL 1
#define MCA_ORG_ID_MGC 2
#define MCA_ORG_ID_TBA 3

#ifdef __cplusplus
}
#endif

#endif
