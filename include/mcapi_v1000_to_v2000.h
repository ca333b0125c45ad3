/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * mcapi_v1000_to_v2000.h: lets programs written for version 1 of MCAPI use version 2. To be included after mcapi.h (or
 * alone). Nodes of version 1 live in domain 0.
 *
 * mcapi_wait() and mcapi_wait_any() take the timeout and the status in the order of either version: which one it is,
 * their types tell. A function of _i that has begun says MCAPI_SUCCESS, as in version 1, also if it has yet to complete
 * (MCAPI_PENDING in version 2). */
#ifndef MCAPI_V1000_TO_V2000_H
#define MCAPI_V1000_TO_V2000_H

#include "mcapi.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define MCAPI_1000_INLINE static inline
#elif defined(__GNUC__)
#define MCAPI_1000_INLINE static __inline__
#else
#define MCAPI_1000_INLINE static
#endif
#if defined(__GNUC__)
#define MCAPI_1000_UNUSED __attribute__((unused))
#else
#define MCAPI_1000_UNUSED
#endif

typedef mcapi_uint_t mcapi_version_t;

/* The domain of nodes of version 1. */
#define MCAPI_1000_DOMAIN 0

MCAPI_1000_INLINE MCAPI_1000_UNUSED void mcapi_1000_initialize(mcapi_node_t node_id, mcapi_version_t *mcapi_version,
    mcapi_status_t *mcapi_status)
{
    mcapi_info_t info;
    mcapi_status_t status;
    (mcapi_initialize)(MCAPI_1000_DOMAIN, node_id, NULL, NULL, &info, &status);
    if (status == MCAPI_SUCCESS && mcapi_version != NULL)
        *mcapi_version = info.mcapi_version;
    if (mcapi_status != NULL)
        *mcapi_status = status;
}

MCAPI_1000_INLINE MCAPI_1000_UNUSED mcapi_endpoint_t mcapi_1000_endpoint_get(mcapi_node_t node_id, mcapi_port_t port_id,
    mcapi_status_t *mcapi_status)
{
    return mcapi_endpoint_get(MCAPI_1000_DOMAIN, node_id, port_id, (mcapi_timeout_t)MCAPI_TIMEOUT_INFINITE,
        mcapi_status);
}

/* What has begun has succeeded. */
#define MCAPI_1000_BEGINS(name, function, parameters, arguments)      \
    MCAPI_1000_INLINE MCAPI_1000_UNUSED void name parameters          \
    {                                                                 \
        (function) arguments;                                         \
        if (mcapi_status != NULL && *mcapi_status == MCAPI_PENDING)   \
            *mcapi_status = MCAPI_SUCCESS;                            \
    }

MCAPI_1000_BEGINS(mcapi_1000_endpoint_get_i, mcapi_endpoint_get_i,
    (mcapi_node_t node_id, mcapi_port_t port_id, mcapi_endpoint_t *endpoint, mcapi_request_t *request,
        mcapi_status_t *mcapi_status),
    (MCAPI_1000_DOMAIN, node_id, port_id, endpoint, request, mcapi_status))

MCAPI_1000_BEGINS(mcapi_1000_msg_send_i, mcapi_msg_send_i,
    (mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint, const void *buffer, size_t buffer_size,
        mcapi_priority_t priority, mcapi_request_t *request, mcapi_status_t *mcapi_status),
    (send_endpoint, receive_endpoint, buffer, buffer_size, priority, request, mcapi_status))

MCAPI_1000_BEGINS(mcapi_1000_msg_recv_i, mcapi_msg_recv_i,
    (mcapi_endpoint_t receive_endpoint, void *buffer, size_t buffer_size, mcapi_request_t *request,
        mcapi_status_t *mcapi_status),
    (receive_endpoint, buffer, buffer_size, request, mcapi_status))

MCAPI_1000_BEGINS(mcapi_1000_pktchan_send_i, mcapi_pktchan_send_i,
    (mcapi_pktchan_send_hndl_t send_handle, const void *buffer, size_t size, mcapi_request_t *request,
        mcapi_status_t *mcapi_status),
    (send_handle, buffer, size, request, mcapi_status))

MCAPI_1000_BEGINS(mcapi_1000_pktchan_recv_i, mcapi_pktchan_recv_i,
    (mcapi_pktchan_recv_hndl_t receive_handle, void **buffer, mcapi_request_t *request, mcapi_status_t *mcapi_status),
    (receive_handle, buffer, request, mcapi_status))

/* Of both kinds of channels. */
#define MCAPI_1000_CHANNELS(kind)                                                                                  \
    MCAPI_1000_BEGINS(mcapi_1000_##kind##_connect_i, mcapi_##kind##_connect_i,                                     \
        (mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint, mcapi_request_t *request,              \
            mcapi_status_t *mcapi_status),                                                                         \
        (send_endpoint, receive_endpoint, request, mcapi_status))                                                  \
    MCAPI_1000_BEGINS(mcapi_1000_##kind##_recv_open_i, mcapi_##kind##_recv_open_i,                                 \
        (mcapi_##kind##_recv_hndl_t *receive_handle, mcapi_endpoint_t receive_endpoint, mcapi_request_t *request,  \
            mcapi_status_t *mcapi_status),                                                                         \
        (receive_handle, receive_endpoint, request, mcapi_status))                                                 \
    MCAPI_1000_BEGINS(mcapi_1000_##kind##_send_open_i, mcapi_##kind##_send_open_i,                                 \
        (mcapi_##kind##_send_hndl_t *send_handle, mcapi_endpoint_t send_endpoint, mcapi_request_t *request,        \
            mcapi_status_t *mcapi_status),                                                                         \
        (send_handle, send_endpoint, request, mcapi_status))                                                       \
    MCAPI_1000_BEGINS(mcapi_1000_##kind##_recv_close_i, mcapi_##kind##_recv_close_i,                               \
        (mcapi_##kind##_recv_hndl_t receive_handle, mcapi_request_t *request, mcapi_status_t *mcapi_status),       \
        (receive_handle, request, mcapi_status))                                                                   \
    MCAPI_1000_BEGINS(mcapi_1000_##kind##_send_close_i, mcapi_##kind##_send_close_i,                               \
        (mcapi_##kind##_send_hndl_t send_handle, mcapi_request_t *request, mcapi_status_t *mcapi_status),          \
        (send_handle, request, mcapi_status))

MCAPI_1000_CHANNELS(pktchan)
MCAPI_1000_CHANNELS(sclchan)

/* Waiting, in either order. */
#if defined(__cplusplus)
}
static inline mcapi_boolean_t mcapi_1000_wait(mcapi_request_t *request, size_t *size, mcapi_status_t *mcapi_status,
    mcapi_timeout_t timeout)
{
    return (mcapi_wait)(request, size, timeout, mcapi_status);
}
static inline mcapi_boolean_t mcapi_1000_wait(mcapi_request_t *request, size_t *size, mcapi_timeout_t timeout,
    mcapi_status_t *mcapi_status)
{
    return (mcapi_wait)(request, size, timeout, mcapi_status);
}
static inline mcapi_uint_t mcapi_1000_wait_any(size_t number, mcapi_request_t **requests, size_t *size,
    mcapi_status_t *mcapi_status, mcapi_timeout_t timeout)
{
    return (mcapi_wait_any)(number, requests, size, timeout, mcapi_status);
}
static inline mcapi_uint_t mcapi_1000_wait_any(size_t number, mcapi_request_t **requests, size_t *size,
    mcapi_timeout_t timeout, mcapi_status_t *mcapi_status)
{
    return (mcapi_wait_any)(number, requests, size, timeout, mcapi_status);
}
extern "C" {
#define mcapi_wait(request, size, a, b) mcapi_1000_wait(request, size, a, b)
#define mcapi_wait_any(number, requests, size, a, b) mcapi_1000_wait_any(number, requests, size, a, b)
#elif defined(__GNUC__)
#define MCAPI_1000_STATUS_FIRST(a) __builtin_types_compatible_p(__typeof__(a), mcapi_status_t *)
#define MCAPI_1000_TIMEOUT(a, b) ((mcapi_timeout_t)(MCAPI_1000_STATUS_FIRST(a) ? (size_t)(b) : (size_t)(a)))
#define MCAPI_1000_STATUS(a, b) ((mcapi_status_t *)(MCAPI_1000_STATUS_FIRST(a) ? (size_t)(a) : (size_t)(b)))
#define mcapi_wait(request, size, a, b) (mcapi_wait)(request, size, MCAPI_1000_TIMEOUT(a, b), MCAPI_1000_STATUS(a, b))
#define mcapi_wait_any(number, requests, size, a, b) \
    (mcapi_wait_any)(number, requests, size, MCAPI_1000_TIMEOUT(a, b), MCAPI_1000_STATUS(a, b))
#endif

/* Functions. */
#define mcapi_initialize mcapi_1000_initialize
#define mcapi_get_node_id mcapi_node_id_get
#define mcapi_create_endpoint mcapi_endpoint_create
#define mcapi_create_anonymous_endpoint(mcapi_status) mcapi_endpoint_create((mcapi_port_t)MCAPI_PORT_ANY, mcapi_status)
#define mcapi_get_endpoint mcapi_1000_endpoint_get
#define mcapi_get_endpoint_i mcapi_1000_endpoint_get_i
#define mcapi_delete_endpoint mcapi_endpoint_delete
#define mcapi_get_endpoint_attribute mcapi_endpoint_get_attribute
#define mcapi_set_endpoint_attribute mcapi_endpoint_set_attribute
#define mcapi_msg_send_i mcapi_1000_msg_send_i
#define mcapi_msg_recv_i mcapi_1000_msg_recv_i
#define mcapi_connect_pktchan_i mcapi_1000_pktchan_connect_i
#define mcapi_open_pktchan_recv_i mcapi_1000_pktchan_recv_open_i
#define mcapi_open_pktchan_send_i mcapi_1000_pktchan_send_open_i
#define mcapi_pktchan_send_i mcapi_1000_pktchan_send_i
#define mcapi_pktchan_recv_i mcapi_1000_pktchan_recv_i
#define mcapi_packetchan_recv_close_i mcapi_1000_pktchan_recv_close_i
#define mcapi_packetchan_send_close_i mcapi_1000_pktchan_send_close_i
#define mcapi_pktchan_recv_close_i mcapi_1000_pktchan_recv_close_i
#define mcapi_pktchan_send_close_i mcapi_1000_pktchan_send_close_i
#define mcapi_pktchan_free mcapi_pktchan_release
#define mcapi_connect_sclchan_i mcapi_1000_sclchan_connect_i
#define mcapi_open_sclchan_recv_i mcapi_1000_sclchan_recv_open_i
#define mcapi_open_sclchan_send_i mcapi_1000_sclchan_send_open_i
#define mcapi_sclchan_recv_close_i mcapi_1000_sclchan_recv_close_i
#define mcapi_sclchan_send_close_i mcapi_1000_sclchan_send_close_i

/* Statuses. */
#define MCAPI_INCOMPLETE MCAPI_PENDING
#define MCAPI_INITIALIZED MCAPI_ERR_NODE_INITIALIZED
#define MCAPI_ENO_INIT MCAPI_ERR_NODE_INITFAILED
#define MCAPI_ENO_FINAL MCAPI_ERR_NODE_FINALFAILED
#define MCAPI_ENODE_NOTINIT MCAPI_ERR_NODE_NOTINIT
#define MCAPI_ENODE_NOTVALID MCAPI_ERR_NODE_INVALID
#define MCAPI_EPORT_NOTVALID MCAPI_ERR_PORT_INVALID
#define MCAPI_EEP_NOTALLOWED MCAPI_ERR_GENERAL
#define MCAPI_EENDP_ISCREATED MCAPI_ERR_ENDP_EXISTS
#define MCAPI_EENDP_LIMIT MCAPI_ERR_ENDP_LIMIT
#define MCAPI_ENOT_ENDP MCAPI_ERR_ENDP_INVALID
#define MCAPI_ENO_ENDPOINT MCAPI_ERR_ENDP_INVALID
#define MCAPI_ENOT_OWNER MCAPI_ERR_ENDP_NOTOWNER
#define MCAPI_EATTR_INCOMP MCAPI_ERR_ATTR_INCOMPATIBLE
#define MCAPI_EATTR_NUM MCAPI_ERR_ATTR_NUM
#define MCAPI_EATTR_SIZE MCAPI_ERR_ATTR_SIZE
#define MCAPI_EREAD_ONLY MCAPI_ERR_ATTR_READONLY
#define MCAPI_EMESS_LIMIT MCAPI_ERR_MSG_SIZE
#define MCAPI_ETRUNCATED MCAPI_ERR_MSG_TRUNCATED
#define MCAPI_EPACK_LIMIT MCAPI_ERR_PKT_SIZE
#define MCAPI_ESCL_SIZE MCAPI_ERR_SCL_SIZE
#define MCAPI_ENO_BUFFER MCAPI_ERR_MEM_LIMIT
#define MCAPI_ENO_MEM MCAPI_ERR_MEM_LIMIT
#define MCAPI_ENOT_VALID_BUF MCAPI_ERR_BUF_INVALID
#define MCAPI_EPRIO MCAPI_ERR_PRIORITY
#define MCAPI_ECHAN_OPEN MCAPI_ERR_CHAN_OPEN
#define MCAPI_ECHAN_TYPE MCAPI_ERR_CHAN_TYPE
#define MCAPI_EDIR MCAPI_ERR_CHAN_DIRECTION
#define MCAPI_ECONNECTED MCAPI_ERR_CHAN_CONNECTED
#define MCAPI_ENOT_CONNECTED MGC_MCAPI_ERR_NOT_CONNECTED
#define MCAPI_ENOT_OPEN MCAPI_ERR_CHAN_NOTOPEN
#define MCAPI_ENOT_HANDLE MCAPI_ERR_CHAN_INVALID
#define MCAPI_ENO_REQUEST MCAPI_ERR_REQUEST_LIMIT
#define MCAPI_ENOTREQ_HANDLE MCAPI_ERR_REQUEST_INVALID
#define MCAPI_EREQ_CANCELED MCAPI_ERR_REQUEST_CANCELLED
#define MCAPI_EREQ_PENDING MCAPI_ERR_WAIT_PENDING
#define MCAPI_EREQ_TIMEOUT MCAPI_TIMEOUT
#define MCAPI_EPARAM MCAPI_ERR_PARAMETER

#ifdef __cplusplus
}
#endif

#endif
