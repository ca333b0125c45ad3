/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * mcapi_impl_spec.h: what Musubi chooses where MCAPI leaves it to the implementation. docs/mcapi-conformance.md says
 * why. A test compares the limits with the library's. */
#ifndef MCAPI_IMPL_SPEC_H
#define MCAPI_IMPL_SPEC_H

#include "mca.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An endpoint: the same 32 bits on every node of the system, so a program may send it in a message. The highest bit is
 * 0; an endpoint that is created again after deletion is another one. */
typedef unsigned int mcapi_endpoint_t;

/* A request. Valid on the node that made it, in each of its threads. 0 is never one. */
typedef mca_request_t mcapi_request_t;

/* Ends of channels. Valid on the node that opened them, in each of its threads. 0 is never one. */
typedef unsigned int mcapi_pktchan_recv_hndl_t;
typedef unsigned int mcapi_pktchan_send_hndl_t;
typedef unsigned int mcapi_sclchan_recv_hndl_t;
typedef unsigned int mcapi_sclchan_send_hndl_t;

/* Parameters of mcapi_initialize(). There are none: the struct is never read, so it may be uninitialised. Which node is
 * where, is said by the file that the environment variable MUSUBI_SYSTEM names. */
typedef struct mcapi_param {
    unsigned int reserved;
} mcapi_param_t;

/* Attributes of a node to be. To be filled in by mcapi_node_init_attributes(). */
typedef struct mcapi_node_attributes {
    unsigned int mark;
    unsigned int type;
    unsigned int reserved[6];
} mcapi_node_attributes_t;

/* What mcapi_info_t.impl_info points to: constant text that is there as long as the program. */
typedef struct impl_info {
    const char *implementation; /* "Musubi" */
    const char *version;        /* of the library, as 1.2.3 */
} impl_info_t;

/* Ports from 0 that programs cannot have: none. */
#define MCAPI_NUM_RESERVED_PORTS 0

/* Limits of numbers. */
#define MCAPI_MAX_DOMAIN 31
#define MCAPI_MAX_NODE 1023
#define MCAPI_MIN_PORT MCAPI_NUM_RESERVED_PORTS
#define MCAPI_MAX_PORT 65535

/* Limits of sizes, in bytes. MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE of an endpoint can be smaller, not larger. */
#define MCAPI_MAX_MESSAGE_SIZE 65536
#define MCAPI_MAX_PACKET_SIZE 1048576

/* The least urgent priority. (The most urgent is MCAPI_MAX_PRORITY, 0.) */
#define MCAPI_MIN_PRORITY 3

/* Requests that a node can have unfinished, or finished and not asked about. */
#define MCA_MAX_REQUESTS 4096

/* Endpoints that a node can have. */
#define MCAPI_MAX_ENDPOINTS 1024

/* Messages of one node that wait unread at one endpoint, and packets in one channel; more wait at the sender. */
#define MCAPI_MAX_QUEUE_ELEMENTS 64

/* Packets of one channel that a program can hold before it releases one. */
#define MCAPI_MAX_BUFFERS 64

/* What MCAPI_ENDP_ATTR_ENDP_STATUS tells in its upper half. The flags of its lower half share bits, as in all published
 * headers; these do not. */
#define MUSUBI_ENDP_STATUS_CONNECTED 0x00010000
#define MUSUBI_ENDP_STATUS_OPEN 0x00020000
#define MUSUBI_ENDP_STATUS_OPEN_PENDING 0x00040000
#define MUSUBI_ENDP_STATUS_CLOSE_PENDING 0x00080000
#define MUSUBI_ENDP_STATUS_PKTCHAN 0x00100000
#define MUSUBI_ENDP_STATUS_SCLCHAN 0x00200000
#define MUSUBI_ENDP_STATUS_SEND 0x00400000
#define MUSUBI_ENDP_STATUS_RECEIVE 0x00800000

/* Names that other implementations' headers have and programs use. */
#ifndef MCAPI_MAX_MSG_SIZE
#define MCAPI_MAX_MSG_SIZE MCAPI_MAX_MESSAGE_SIZE
#endif
#ifndef MCAPI_MAX_PKT_SIZE
#define MCAPI_MAX_PKT_SIZE MCAPI_MAX_PACKET_SIZE
#endif
#ifndef MCAPI_MIN_PRIORITY
#define MCAPI_MIN_PRIORITY MCAPI_MIN_PRORITY
#endif
/* There: the largest number of a priority. */
#ifndef MCAPI_MAX_PRIORITY
#define MCAPI_MAX_PRIORITY MCAPI_MIN_PRORITY
#endif
#ifndef MCA_MAX_DOMAINS
#define MCA_MAX_DOMAINS (MCAPI_MAX_DOMAIN + 1)
#endif
#ifndef MCA_MAX_NODES
#define MCA_MAX_NODES (MCAPI_MAX_NODE + 1)
#endif
#ifndef MCAPI_MAX_REQUESTS
#define MCAPI_MAX_REQUESTS MCA_MAX_REQUESTS
#endif

#ifdef __cplusplus
}
#endif

#endif
