/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * mcapi.h: MCAPI 2.015, communication between nodes: messages, packet channels, scalar channels.
 *
 * A node is what called mcapi_initialize(): the calling thread, and every thread of the process that has not called it
 * (such threads belong to the node that was initialised first). Nodes of one machine meet in shared memory; where the
 * others are, says the description that the environment variable MUSUBI_SYSTEM names.
 *
 *     sender                                                receiver
 *     mcapi_initialize(0, 1, NULL, NULL, &info, &st);       mcapi_initialize(0, 2, NULL, NULL, &info, &st);
 *     me = mcapi_endpoint_create(MCAPI_PORT_ANY, &st);      me = mcapi_endpoint_create(5, &st);
 *     to = mcapi_endpoint_get(0, 2, 5, 1000, &st);          mcapi_msg_recv(me, buffer, sizeof buffer, &n, &st);
 *     mcapi_msg_send(me, to, "hello", 5, 0, &st);           mcapi_finalize(&st);
 *     mcapi_finalize(&st);
 *
 * Rules for all functions:
 *  - They may be called from any thread at any time, not from a signal handler. What they say goes to *mcapi_status,
 *    which may be NULL. Nothing is changed, and nothing but the status written, where they fail.
 *  - Without a node every function but mcapi_initialize(), mcapi_node_init_attributes(), mcapi_node_set_attribute() and
 *    mcapi_display_status() says MCAPI_ERR_NODE_NOTINIT, whatever its arguments are. NULL where a pointer is needed is
 *    MCAPI_ERR_PARAMETER.
 *  - Timeouts are milliseconds; 0 tries once.
 *  - Functions ending in _i begin an operation: MCAPI_SUCCESS if it has completed, MCAPI_PENDING if not; in both cases
 *    *request is for mcapi_test(), mcapi_wait(), mcapi_wait_any() and mcapi_cancel(). Buffers given to them are theirs
 *    until the request has completed.
 *
 * Where a core and others map one memory (tasks of an RTOS, and a process beside one; package firmware/mcapi-c) a program is
 * one node: every task belongs to it, whichever initialised it, and any may end it and begin it anew. Any other number is
 * MCAPI_ERR_NODE_INVALID. MUSUBI_SYSTEM and MUSUBI_DEBUG mean nothing there, peers are answered while some task calls, and
 * what one sends is at most a block of the table (4 KiB in the small one), whatever the limits say.
 *
 * docs/mcapi-conformance.md says which status is for what, and what was decided where the standard is silent.
 */
#ifndef MCAPI_H
#define MCAPI_H

#include <stddef.h>

#include "mca.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef mca_int_t mcapi_int_t;
typedef mca_int8_t mcapi_int8_t;
typedef mca_int16_t mcapi_int16_t;
typedef mca_int32_t mcapi_int32_t;
typedef mca_int64_t mcapi_int64_t;
typedef mca_uint_t mcapi_uint_t;
typedef mca_uint8_t mcapi_uint8_t;
typedef mca_uint16_t mcapi_uint16_t;
typedef mca_uint32_t mcapi_uint32_t;
typedef mca_uint64_t mcapi_uint64_t;
typedef mca_boolean_t mcapi_boolean_t;
typedef mca_domain_t mcapi_domain_t;
typedef mca_node_t mcapi_node_t;
typedef mca_status_t mcapi_status_t;
typedef mca_timeout_t mcapi_timeout_t;
typedef unsigned int mcapi_port_t;
typedef unsigned int mcapi_priority_t;

#ifdef __cplusplus
}
#endif

/* Endpoints, requests, handles, and the limits. */
#include "mcapi_impl_spec.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MCAPI_VERSION 2015

#define MCAPI_TRUE MCA_TRUE
#define MCAPI_FALSE MCA_FALSE
#define MCAPI_NULL MCA_NULL
/* Any free port. */
#define MCAPI_PORT_ANY (~0u)
/* Timeouts. */
#define MCAPI_TIMEOUT_INFINITE (~0u)
#define MCAPI_INFINITE MCAPI_TIMEOUT_INFINITE
#define MCAPI_TIMEOUT_IMMEDIATE 0
/* What functions return that fail. */
#define MCAPI_NODE_INVALID (~0u)
#define MCAPI_DOMAIN_INVALID (~0u)
#define MCAPI_RETURN_VALUE_INVALID (~0u)
/* The most urgent priority; greater numbers are less urgent, down to MCAPI_MIN_PRORITY. */
#define MCAPI_MAX_PRORITY 0
/* Bytes that hold the name of any status. */
#define MCAPI_MAX_STATUS_MSG_LEN 32
#ifndef MCAPI_MAX_STATUS_SIZE
#define MCAPI_MAX_STATUS_SIZE MCAPI_MAX_STATUS_MSG_LEN
#endif

/* Directions of parameters, alignment of buffers. */
#ifndef MCAPI_IN
#define MCAPI_IN const
#endif
#ifndef MCAPI_OUT
#define MCAPI_OUT
#endif
#ifndef MCAPI_DECL_ALIGNED
#define MCAPI_DECL_ALIGNED MCA_DECL_ALIGNED
#endif
/* The same in bytes. */
#ifndef MCAPI_BUF_ALIGN
#define MCAPI_BUF_ALIGN 64
#endif

/* What functions say. */
enum mcapi_status_codes {
    MCAPI_SUCCESS = 1, /* done, or complete */
    MCAPI_PENDING, /* not complete yet */
    MCAPI_TIMEOUT, /* the time has passed */
    MCAPI_ERR_PARAMETER, /* an argument that no call takes */
    MCAPI_ERR_DOMAIN_INVALID, /* no domain can have this number */
    MCAPI_ERR_NODE_INVALID, /* no node can have this number */
    MCAPI_ERR_NODE_INITFAILED, /* the node could not start */
    MCAPI_ERR_NODE_INITIALIZED, /* the node runs, or the caller is a node */
    MCAPI_ERR_NODE_NOTINIT, /* the caller is no node, or no longer */
    MCAPI_ERR_NODE_FINALFAILED, /* the node could not be ended */
    MCAPI_ERR_PORT_INVALID, /* no endpoint can have this port, or none is left */
    MCAPI_ERR_ENDP_INVALID, /* not an endpoint (any more) */
    MCAPI_ERR_ENDP_EXISTS, /* the port has an endpoint */
    MCAPI_ERR_ENDP_GET_LIMIT, /* an endpoint of a channel is for one getter */
    MCAPI_ERR_ENDP_DELETED, /* the endpoint was deleted meanwhile */
    MCAPI_ERR_ENDP_NOTOWNER, /* only the node that created it may */
    MCAPI_ERR_ENDP_REMOTE, /* only on the endpoint's own node */
    MCAPI_ERR_ATTR_INCOMPATIBLE, /* the ends differ in what must be equal */
    MCAPI_ERR_ATTR_SIZE, /* not the size of the attribute */
    MCAPI_ERR_ATTR_NUM, /* no such attribute */
    MCAPI_ERR_ATTR_VALUE, /* the attribute cannot have this value */
    MCAPI_ERR_ATTR_NOTSUPPORTED, /* the attribute is not supported */
    MCAPI_ERR_ATTR_READONLY, /* the attribute is for reading */
    MCAPI_ERR_MSG_SIZE, /* longer than messages may be */
    MCAPI_ERR_MSG_TRUNCATED, /* the message was longer than the buffer */
    MCAPI_ERR_CHAN_OPEN, /* the end is open */
    MCAPI_ERR_CHAN_TYPE, /* a channel of the other type */
    MCAPI_ERR_CHAN_DIRECTION, /* the other end of the channel */
    MCAPI_ERR_CHAN_CONNECTED, /* the endpoint is connected */
    MCAPI_ERR_CHAN_OPENPENDING, /* the end is being opened */
    MCAPI_ERR_CHAN_CLOSEPENDING, /* the end is being closed */
    MCAPI_ERR_CHAN_NOTOPEN, /* the end is not open */
    MCAPI_ERR_CHAN_INVALID, /* not a channel's end (any more) */
    MCAPI_ERR_PKT_SIZE, /* longer than packets may be */
    MCAPI_ERR_TRANSMISSION, /* not delivered: the other node or the way is gone */
    MCAPI_ERR_PRIORITY, /* no such priority */
    MCAPI_ERR_BUF_INVALID, /* not a buffer of a packet in hand */
    MCAPI_ERR_MEM_LIMIT, /* no memory for now */
    MCAPI_ERR_REQUEST_INVALID, /* not a request (any more) */
    MCAPI_ERR_REQUEST_LIMIT, /* too many requests */
    MCAPI_ERR_REQUEST_CANCELLED, /* the request was cancelled */
    MCAPI_ERR_WAIT_PENDING, /* another thread waits for the request */
    MCAPI_ERR_GENERAL, /* anything else */
    MCAPI_STATUSCODE_END
};

/* Names that other headers have. MCAPI_ERR_SCL_SIZE and MGC_MCAPI_ERR_NOT_CONNECTED say less here. */
#ifndef MCAPI_ERR_MSG_LIMIT
#define MCAPI_ERR_MSG_LIMIT MCAPI_ERR_MSG_SIZE
#endif
#ifndef MCAPI_ERR_PKT_LIMIT
#define MCAPI_ERR_PKT_LIMIT MCAPI_ERR_PKT_SIZE
#endif
#ifndef MCAPI_ERR_SCL_SIZE
#define MCAPI_ERR_SCL_SIZE MCAPI_ERR_GENERAL
#endif
#ifndef MCAPI_ERR_ENDP_LIMIT
#define MCAPI_ERR_ENDP_LIMIT MCAPI_ERR_PORT_INVALID
#endif
#ifndef MCAPI_ERR_ENDP_NOPORTS
#define MCAPI_ERR_ENDP_NOPORTS MCAPI_ERR_PORT_INVALID
#endif
#ifndef MCAPI_ERR_ENDP_GET_INVALID
#define MCAPI_ERR_ENDP_GET_INVALID MCAPI_ERR_ENDP_GET_LIMIT
#endif
#ifndef MGC_MCAPI_ERR_NOT_CONNECTED
#define MGC_MCAPI_ERR_NOT_CONNECTED MCAPI_ERR_CHAN_INVALID
#endif

/* Attributes of nodes. */
enum mcapi_node_attribute_numbers {
    MCAPI_NODE_ATTR_TYPE, /* mcapi_node_attr_type_t */
    MCAPI_NODE_ATTR_END
};

typedef mcapi_uint_t mcapi_node_attr_type_t;

enum mcapi_node_attribute_types {
    MCAPI_NODE_ATTR_TYPE_REGULAR, /* the default */
    MCAPI_NODE_ATTR_TYPE_END
};

/* Attributes of endpoints. Those marked C must be equal at both ends of a channel. RO: for reading. */
enum mcapi_endp_attribute_numbers {
    MCAPI_ENDP_ATTR_TYPE,             /* MCAPI_ENDP_ATTR_TYPE_...; connecting sets it too */
    MCAPI_ENDP_ATTR_GET_COUNT,        /* RO; gets of the endpoint that have not been given back */
    MCAPI_ENDP_ATTR_GET_SOURCE,       /* RO; who got it last */
    MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, /* C; bytes of a message or packet */
    MCAPI_ENDP_ATTR_BUFFER_TYPE,      /* C; MCAPI_ENDP_ATTR_FIFO_BUFFER */
    MCAPI_ENDP_ATTR_MEMORY_TYPE,      /* C; where, and what if there is none */
    MCAPI_ENDP_ATTR_NUM_PRIORITIES,   /* C */
    MCAPI_ENDP_ATTR_PRIORITY,         /* C; of the channel, taken when it is connected */
    MCAPI_ENDP_ATTR_NUM_SEND_BUFFERS, /* RO; messages that can wait to be sent */
    MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, /* RO; receive buffers that are free now */
    MCAPI_ENDP_ATTR_ENDP_STATUS,      /* RO; MCAPI_ENDP_ATTR_STATUS_..., MUSUBI_ENDP_STATUS_... */
    MCAPI_ENDP_ATTR_TIMEOUT,          /* of blocking sends and receives */
    MCAPI_ENDP_ATTR_END
};

typedef mcapi_uint_t mcapi_endp_attr_type_t;
#define MCAPI_ENDP_ATTR_TYPE_MESSAGE 0x00000001 /* the default */
#define MCAPI_ENDP_ATTR_TYPE_PKTCHAN 0x00000002
#define MCAPI_ENDP_ATTR_TYPE_SCLCHAN 0x00000004

typedef mcapi_uint_t mcapi_endp_attr_get_count_t;

typedef struct {
    mcapi_domain_t domain_id; /* MCAPI_DOMAIN_INVALID: nobody */
    mcapi_node_t node_id;     /* MCAPI_NODE_INVALID: nobody */
} mcapi_endp_attr_get_source_t;

typedef mcapi_int_t mcapi_endp_attr_max_payload_size_t;

typedef mcapi_uint_t mcapi_endp_attr_buffer_type_t;
enum mcapi_buffer_type {
    MCAPI_ENDP_ATTR_FIFO_BUFFER
};

/* The lower 16 bits say where, the upper ones what happens when memory is used up. */
typedef mcapi_uint_t mcapi_endp_attr_memory_type_t;
enum mcapi_memory_type {
    MCAPI_ENDP_ATTR_LOCAL_MEMORY, /* the default */
    MCAPI_ENDP_ATTR_SHARED_MEMORY,
    MCAPI_ENDP_ATTR_REMOTE_MEMORY
};
#define MCAPI_ENDP_ATTR_BLOCK_ON_MEM_LIMIT 0x00000000 /* the default */
#define MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT 0x00010000  /* MCAPI_ERR_MEM_LIMIT */

typedef mcapi_int_t mcapi_endp_attr_num_priorities_t;
typedef mcapi_uint_t mcapi_endp_attr_priority_t;
typedef mcapi_int_t mcapi_endp_attr_num_send_buffers_t;
typedef mcapi_uint_t mcapi_endp_attr_num_recv_buffers_t;

/* The lower 16 bits. As published: the second four share the bits of the first four. */
typedef mcapi_uint_t mcapi_endp_attr_status_t;
#define MCAPI_ENDP_ATTR_STATUS_CONNECTED 0x00000001
#define MCAPI_ENDP_ATTR_STATUS_OPEN 0x00000002
#define MCAPI_ENDP_ATTR_STATUS_OPEN_PENDING 0x00000004
#define MCAPI_ENDP_ATTR_STATUS_CLOSE_PENDING 0x00000008
#define MCAPI_ENDP_ATTR_STATUS_PKTCHAN 0x00000001
#define MCAPI_ENDP_ATTR_STATUS_SCLCHAN 0x00000002
#define MCAPI_ENDP_ATTR_STATUS_SEND 0x00000004
#define MCAPI_ENDP_ATTR_STATUS_RECEIVE 0x00000008
#define MCAPI_ENDP_ATTR_STATUS_GET_PENDING 0x00000010

typedef mcapi_timeout_t mcapi_endp_attr_timeout_t;

/* Numbers of attributes: the first range is the association's, each further one an organisation's. */
#define MCAPI_MAX_NUM_ENDP_ATTRS_MCA 64
#define MCAPI_MAX_NUM_ENDP_ATTRS_OTHER 32
#define mcapi_start_endp_attribute(x) (MCAPI_MAX_NUM_ENDP_ATTRS_MCA + (x) * MCAPI_MAX_NUM_ENDP_ATTRS_OTHER)
#define mcapi_end_endp_attribute(x) (MCAPI_MAX_NUM_ENDP_ATTRS_MCA + ((x) + 1) * MCAPI_MAX_NUM_ENDP_ATTRS_OTHER)

typedef struct {
    mcapi_uint_t organization_id;
    mcapi_uint_t start_endp_attr_num;
    mcapi_uint_t end_endp_attr_num;
} mcapi__endp_attr_range_t;

/* What mcapi_initialize() tells. */
typedef struct {
    mcapi_uint_t mcapi_version;          /* MCAPI_VERSION */
    mcapi_uint_t organization_id;        /* MCA_ORG_ID_TBA */
    mcapi_uint_t implementation_version; /* major * 0x1000 + minor * 0x10 + patch */
    mcapi_uint_t number_of_domains;      /* of the system */
    mcapi_uint_t number_of_nodes;        /* of the caller's domain */
    mcapi_uint_t number_of_ports;        /* that a node can have */
    impl_info_t *impl_info;
} mcapi_info_t;

/* Nodes. What mcapi_initialize() is given is never written; not const, so that compilers do not warn of parameters that
 * a program has not filled in. */

extern void mcapi_initialize(mcapi_domain_t domain_id, mcapi_node_t node_id,
    mcapi_node_attributes_t *mcapi_node_attributes, mcapi_param_t *init_parameters,
    mcapi_info_t *mcapi_info, mcapi_status_t *mcapi_status);
extern void mcapi_finalize(mcapi_status_t *mcapi_status);
extern mcapi_domain_t mcapi_domain_id_get(mcapi_status_t *mcapi_status);
extern mcapi_node_t mcapi_node_id_get(mcapi_status_t *mcapi_status);
extern void mcapi_node_init_attributes(mcapi_node_attributes_t *mcapi_node_attributes, mcapi_status_t *mcapi_status);
extern void mcapi_node_set_attribute(mcapi_node_attributes_t *mcapi_node_attributes, mcapi_uint_t attribute_num,
    const void *attribute, size_t attribute_size, mcapi_status_t *mcapi_status);
extern void mcapi_node_get_attribute(mcapi_domain_t domain_id, mcapi_node_t node_id, mcapi_uint_t attribute_num,
    void *attribute, size_t attribute_size, mcapi_status_t *mcapi_status);

/* Endpoints. */

extern mcapi_endpoint_t mcapi_endpoint_create(mcapi_port_t port_id, mcapi_status_t *mcapi_status);
extern void mcapi_endpoint_get_i(mcapi_domain_t domain_id, mcapi_node_t node_id, mcapi_port_t port_id,
    mcapi_endpoint_t *endpoint, mcapi_request_t *request, mcapi_status_t *mcapi_status);
extern mcapi_endpoint_t mcapi_endpoint_get(mcapi_domain_t domain_id, mcapi_node_t node_id, mcapi_port_t port_id,
    mcapi_timeout_t timeout, mcapi_status_t *mcapi_status);
extern void mcapi_endpoint_release(mcapi_endpoint_t endpoint, mcapi_status_t *mcapi_status);
extern void mcapi_endpoint_delete(mcapi_endpoint_t endpoint, mcapi_status_t *mcapi_status);
extern void mcapi_endpoint_get_attribute(mcapi_endpoint_t endpoint, mcapi_uint_t attribute_num, void *attribute,
    size_t attribute_size, mcapi_status_t *mcapi_status);
extern void mcapi_endpoint_set_attribute(mcapi_endpoint_t endpoint, mcapi_uint_t attribute_num, const void *attribute,
    size_t attribute_size, mcapi_status_t *mcapi_status);

/* Messages. */

extern void mcapi_msg_send_i(mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint, const void *buffer,
    size_t buffer_size, mcapi_priority_t priority, mcapi_request_t *request, mcapi_status_t *mcapi_status);
extern void mcapi_msg_send(mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint, const void *buffer,
    size_t buffer_size, mcapi_priority_t priority, mcapi_status_t *mcapi_status);
extern void mcapi_msg_recv_i(mcapi_endpoint_t receive_endpoint, void *buffer, size_t buffer_size,
    mcapi_request_t *request, mcapi_status_t *mcapi_status);
extern void mcapi_msg_recv(mcapi_endpoint_t receive_endpoint, void *buffer, size_t buffer_size, size_t *received_size,
    mcapi_status_t *mcapi_status);
extern mcapi_uint_t mcapi_msg_available(mcapi_endpoint_t receive_endpoint, mcapi_status_t *mcapi_status);

/* Packet channels. A packet is received in memory of the library's, until mcapi_pktchan_release(). A zero byte lies
 * behind it, unless it has the greatest length.
 *
 * Opening and closing, of both kinds of channels: the request completes when both ends are open, or closed. If both are of
 * the caller's node, it also completes once mcapi_test() was called for it 1,000 times and for 200 ms, so that a program
 * of one thread may loop until one end is open and then open the other. The same goes for sends within a node. */

extern void mcapi_pktchan_connect_i(mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint,
    mcapi_request_t *request, mcapi_status_t *mcapi_status);
extern void mcapi_pktchan_recv_open_i(mcapi_pktchan_recv_hndl_t *receive_handle, mcapi_endpoint_t receive_endpoint,
    mcapi_request_t *request, mcapi_status_t *mcapi_status);
extern void mcapi_pktchan_send_open_i(mcapi_pktchan_send_hndl_t *send_handle, mcapi_endpoint_t send_endpoint,
    mcapi_request_t *request, mcapi_status_t *mcapi_status);
extern void mcapi_pktchan_send_i(mcapi_pktchan_send_hndl_t send_handle, const void *buffer, size_t size,
    mcapi_request_t *request, mcapi_status_t *mcapi_status);
extern void mcapi_pktchan_send(mcapi_pktchan_send_hndl_t send_handle, const void *buffer, size_t size,
    mcapi_status_t *mcapi_status);
extern void mcapi_pktchan_recv_i(mcapi_pktchan_recv_hndl_t receive_handle, void **buffer, mcapi_request_t *request,
    mcapi_status_t *mcapi_status);
extern void mcapi_pktchan_recv(mcapi_pktchan_recv_hndl_t receive_handle, void **buffer, size_t *received_size,
    mcapi_status_t *mcapi_status);
extern mcapi_uint_t mcapi_pktchan_available(mcapi_pktchan_recv_hndl_t receive_handle, mcapi_status_t *mcapi_status);
extern void mcapi_pktchan_release(void *buffer, mcapi_status_t *mcapi_status);
extern mcapi_boolean_t mcapi_pktchan_release_test(void *buffer, mcapi_status_t *mcapi_status);
extern void mcapi_pktchan_recv_close_i(mcapi_pktchan_recv_hndl_t receive_handle, mcapi_request_t *request,
    mcapi_status_t *mcapi_status);
extern void mcapi_pktchan_send_close_i(mcapi_pktchan_send_hndl_t send_handle, mcapi_request_t *request,
    mcapi_status_t *mcapi_status);

/* Scalar channels. What is received must have the size that was sent; otherwise MCAPI_ERR_GENERAL, and it stays. */

extern void mcapi_sclchan_connect_i(mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint,
    mcapi_request_t *request, mcapi_status_t *mcapi_status);
extern void mcapi_sclchan_recv_open_i(mcapi_sclchan_recv_hndl_t *receive_handle, mcapi_endpoint_t receive_endpoint,
    mcapi_request_t *request, mcapi_status_t *mcapi_status);
extern void mcapi_sclchan_send_open_i(mcapi_sclchan_send_hndl_t *send_handle, mcapi_endpoint_t send_endpoint,
    mcapi_request_t *request, mcapi_status_t *mcapi_status);
extern void mcapi_sclchan_send_uint64(mcapi_sclchan_send_hndl_t send_handle, mcapi_uint64_t dataword,
    mcapi_status_t *mcapi_status);
extern void mcapi_sclchan_send_uint32(mcapi_sclchan_send_hndl_t send_handle, mcapi_uint32_t dataword,
    mcapi_status_t *mcapi_status);
extern void mcapi_sclchan_send_uint16(mcapi_sclchan_send_hndl_t send_handle, mcapi_uint16_t dataword,
    mcapi_status_t *mcapi_status);
extern void mcapi_sclchan_send_uint8(mcapi_sclchan_send_hndl_t send_handle, mcapi_uint8_t dataword,
    mcapi_status_t *mcapi_status);
extern mcapi_uint64_t mcapi_sclchan_recv_uint64(mcapi_sclchan_recv_hndl_t receive_handle,
    mcapi_status_t *mcapi_status);
extern mcapi_uint32_t mcapi_sclchan_recv_uint32(mcapi_sclchan_recv_hndl_t receive_handle,
    mcapi_status_t *mcapi_status);
extern mcapi_uint16_t mcapi_sclchan_recv_uint16(mcapi_sclchan_recv_hndl_t receive_handle,
    mcapi_status_t *mcapi_status);
extern mcapi_uint8_t mcapi_sclchan_recv_uint8(mcapi_sclchan_recv_hndl_t receive_handle, mcapi_status_t *mcapi_status);
extern mcapi_uint_t mcapi_sclchan_available(mcapi_sclchan_recv_hndl_t receive_handle, mcapi_status_t *mcapi_status);
extern void mcapi_sclchan_recv_close_i(mcapi_sclchan_recv_hndl_t receive_handle, mcapi_request_t *request,
    mcapi_status_t *mcapi_status);
extern void mcapi_sclchan_send_close_i(mcapi_sclchan_send_hndl_t send_handle, mcapi_request_t *request,
    mcapi_status_t *mcapi_status);

/* Requests. */

extern mcapi_boolean_t mcapi_test(mcapi_request_t *request, size_t *size, mcapi_status_t *mcapi_status);
extern mcapi_boolean_t mcapi_wait(mcapi_request_t *request, size_t *size, mcapi_timeout_t timeout,
    mcapi_status_t *mcapi_status);
extern mcapi_uint_t mcapi_wait_any(size_t number, mcapi_request_t **requests, size_t *size, mcapi_timeout_t timeout,
    mcapi_status_t *mcapi_status);
extern void mcapi_cancel(mcapi_request_t *request, mcapi_status_t *mcapi_status);

/* For people. The name of a status, cut to `size` bytes and filled up with NULs; "" and NULL for no status. At level 1,
 * which is the usual one, the library says once on the standard error what a status cannot: why a node does not start, why
 * there is no link with another one. 0 is silent, from 2 on it repeats itself. The environment variable MUSUBI_DEBUG counts
 * more than mcapi_set_debug_level(), which is to be called before mcapi_initialize(). mcapi_display_state() shows the node
 * there. */

extern char *mcapi_display_status(mcapi_status_t status, char *status_message, size_t size);
extern void mcapi_set_debug_level(int level);
extern void mcapi_display_state(void *handle);

#ifdef __cplusplus
}
#endif

#endif
