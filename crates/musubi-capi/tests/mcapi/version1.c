/* A program written for version 1 of MCAPI, by way of mcapi_v1000_to_v2000.h. */
#include "check.h"

#include <mcapi_v1000_to_v2000.h>

int main(void)
{
    mcapi_status_t st = 0;
    mcapi_version_t version = 0;
    mcapi_request_t request, *requests[1] = { &request };
    mcapi_endpoint_t one, two, got = 0;
    mcapi_pktchan_send_hndl_t out;
    mcapi_pktchan_recv_hndl_t in;
    mcapi_request_t opens;
    void *packet;
    size_t size;
    mcapi_initialize(1, &version, &st);
    PROVES("section 2", st == MCAPI_SUCCESS && version == MCAPI_VERSION);
    WANT(mcapi_get_node_id(&st) == 1 && mcapi_domain_id_get(&st) == 0);
    OK(one = mcapi_create_endpoint(10, &st));
    OK(two = mcapi_create_anonymous_endpoint(&st));
    WANT(mcapi_get_endpoint(1, 10, &st) == one);
    OK(mcapi_get_endpoint_i(1, 11, &got, &request, &st));
    OK(mcapi_cancel(&request, &st));
    OK(mcapi_get_endpoint_i(1, 10, &got, &request, &st));
    WANT(mcapi_wait(&request, &size, &st, MCAPI_INFINITE) && got == one);
    mcapi_msg_recv_i(two, &got, sizeof got, &request, NULL);
    WANT(!mcapi_test(&request, &size, &st) && st == MCAPI_INCOMPLETE);
    OK(mcapi_cancel(&request, &st));
    OK(mcapi_msg_recv_i(two, &got, sizeof got, &request, &st));
    WANT(!mcapi_wait(&request, &size, &st, 1) && st == MCAPI_EREQ_TIMEOUT);
    WANT(!mcapi_wait(&request, &size, 1, &st) && st == MCAPI_TIMEOUT);
    OK(mcapi_msg_send(one, two, &one, sizeof one, 0, &st));
    WANT(mcapi_wait_any(1, requests, &size, &st, MCAPI_INFINITE) == 0 && size == sizeof one);
    OK(mcapi_connect_pktchan_i(one, two, &request, &st));
    WANT(mcapi_wait(&request, &size, &st, MCAPI_INFINITE));
    OK(mcapi_open_pktchan_send_i(&out, one, &opens, &st));
    OK(mcapi_open_pktchan_recv_i(&in, two, &request, &st));
    WANT(mcapi_wait(&request, &size, &st, MCAPI_INFINITE) && mcapi_wait(&opens, &size, &st, MCAPI_INFINITE));
    OK(mcapi_pktchan_send(out, "old", 4, &st));
    OK(mcapi_pktchan_recv(in, &packet, &size, &st));
    WANT(strcmp(packet, "old") == 0);
    OK(mcapi_pktchan_free(packet, &st));
    OK(mcapi_packetchan_send_close_i(out, &opens, &st));
    OK(mcapi_packetchan_recv_close_i(in, &request, &st));
    WANT(mcapi_wait(&request, &size, &st, MCAPI_INFINITE) && mcapi_wait(&opens, &size, &st, MCAPI_INFINITE));
    mcapi_delete_endpoint(0xdeadbeef, &st);
    WANT(st == MCAPI_ENOT_ENDP);
    OK(mcapi_delete_endpoint(one, &st));
    finalize();
    return 0;
}
