/* UCX: tagged send and receive (UCP) over its shared-memory transports, one worker a process, polled. */
#define _GNU_SOURCE
#include <ucp/api/ucp.h>

#include "pingpong.h"
#include "twoprocesses.h"

static void must(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
        exit(EXIT_FAILURE);
    }
}

/* Progresses the worker until a request is complete. */
static inline void finish(ucp_worker_h worker, ucs_status_ptr_t request)
{
    if (request == NULL)
        return;
    if (UCS_PTR_IS_ERR(request))
        must(UCS_PTR_STATUS(request), "a request");
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
        ucp_worker_progress(worker);
    ucp_request_free(request);
    must(status, "a request");
}

static ucp_worker_h open_worker(void)
{
    ucp_config_t *config;
    must(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG };
    ucp_context_h context;
    must(ucp_init(&params, config, &context), "ucp_init");
    ucp_config_release(config);
    ucp_worker_params_t worker_params = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                          .thread_mode = UCS_THREAD_MODE_SINGLE };
    ucp_worker_h worker;
    must(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
    return worker;
}

static ucp_ep_h connect_other(const struct side *s, ucp_worker_h worker)
{
    static char theirs[65536];
    ucp_address_t *mine;
    size_t mine_bytes;
    must(ucp_worker_get_address(worker, &mine, &mine_bytes), "ucp_worker_get_address");
    exchange(s, mine, mine_bytes, theirs, sizeof theirs);
    ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = (ucp_address_t *)theirs };
    ucp_ep_h ep;
    must(ucp_ep_create(worker, &params, &ep), "ucp_ep_create");
    return ep;
}

static inline void tell(ucp_worker_h worker, ucp_ep_h ep, char *out, size_t bytes, uint64_t round)
{
    static const ucp_request_param_t none = { .op_attr_mask = 0 };
    mark(out, bytes, round);
    finish(worker, ucp_tag_send_nbx(ep, out, bytes, 1, &none));
}

static inline void hear(ucp_worker_h worker, char *in, size_t bytes, uint64_t round)
{
    static const ucp_request_param_t none = { .op_attr_mask = 0 };
    finish(worker, ucp_tag_recv_nbx(worker, in, bytes, 1, (ucp_tag_t)-1, &none));
    check(in, bytes, round);
}

int main(int argc, char **argv)
{
    struct options o = read_options(argc, argv);
    setenv("UCX_TLS", "sm,self", 0);
    struct side s = split();
    ucp_worker_h worker = open_worker();
    ucp_ep_h ep = connect_other(&s, worker);
    char *out = payload_buffer(o.bytes), *in = payload_buffer(o.bytes);
    meet(&s);
    struct samples samples = begin_samples(&o);
    for (uint64_t round = 1; round <= WARM_UP + o.samples; round++) {
        if (s.number == 0) {
            tell(worker, ep, out, o.bytes, round);
            hear(worker, in, o.bytes, round);
            add_sample(&samples, round);
        } else {
            hear(worker, in, o.bytes, round);
            tell(worker, ep, out, o.bytes, round);
        }
    }
    ucp_request_param_t none = { .op_attr_mask = 0 };
    finish(worker, ucp_worker_flush_nbx(worker, &none));
    meet(&s);
    join(&s);
    report("ucx", &o, &samples);
    return EXIT_SUCCESS;
}
