/* libfabric: tagged messages between reliable-datagram endpoints of the shm provider, one completion queue, polled.
 * What fits is injected, which saves the sender a completion. */
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "pingpong.h"
#include "twoprocesses.h"

struct end {
    struct fid_ep *ep;
    struct fid_cq *cq;
    fi_addr_t other;
    size_t inject_bytes_max;
    uint64_t sends_open;    /* sends without completion so far */
    uint64_t receives_done; /* receives that completed and were not used yet */
};

static void must(ssize_t result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-result));
        exit(EXIT_FAILURE);
    }
}

static struct fi_info *find_provider(void)
{
    struct fi_info *hints = fi_allocinfo(), *info = NULL;
    hints->caps = FI_TAGGED;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup("shm");
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
    fi_freeinfo(hints);
    return info;
}

static struct end open_end(const struct side *s, struct fi_info *info)
{
    struct end e = { .inject_bytes_max = info->tx_attr->inject_size };
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    must(fi_endpoint(domain, info, &e.ep, NULL), "fi_endpoint");
    struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 128 };
    must(fi_cq_open(domain, &cq_attr, &e.cq, NULL), "fi_cq_open");
    struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 2 };
    must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
    must(fi_ep_bind(e.ep, &av->fid, 0), "bind the address vector");
    must(fi_ep_bind(e.ep, &e.cq->fid, FI_TRANSMIT | FI_RECV), "bind the completion queue");
    must(fi_enable(e.ep), "fi_enable");
    char mine[512], theirs[512];
    size_t mine_bytes = sizeof mine;
    must(fi_getname(&e.ep->fid, mine, &mine_bytes), "fi_getname");
    exchange(s, mine, mine_bytes, theirs, sizeof theirs);
    if (fi_av_insert(av, theirs, 1, &e.other, 0, NULL) != 1)
        fail("fi_av_insert");
    return e;
}

/* Looks once for a completion. */
static inline void progress(struct end *e)
{
    struct fi_cq_tagged_entry entry;
    ssize_t n = fi_cq_read(e->cq, &entry, 1);
    if (n == 1) {
        if (entry.flags & FI_RECV)
            e->receives_done++;
        else
            e->sends_open--;
    } else if (n != -FI_EAGAIN) {
        must(n, "fi_cq_read");
    }
}

static inline void expect(struct end *e, void *in, size_t bytes)
{
    ssize_t result;
    while ((result = fi_trecv(e->ep, in, bytes, NULL, e->other, 1, 0, NULL)) == -FI_EAGAIN)
        progress(e);
    must(result, "fi_trecv");
}

static inline void tell(struct end *e, void *out, size_t bytes, uint64_t round)
{
    int injects = bytes <= e->inject_bytes_max;
    ssize_t result;
    mark(out, bytes, round);
    do {
        result = injects ? fi_tinject(e->ep, out, bytes, e->other, 1)
                         : fi_tsend(e->ep, out, bytes, NULL, e->other, 1, NULL);
        if (result == -FI_EAGAIN)
            progress(e);
    } while (result == -FI_EAGAIN);
    must(result, "send");
    e->sends_open += !injects;
    while (e->sends_open > 0)
        progress(e);
}

static inline void hear(struct end *e, const void *in, size_t bytes, uint64_t round)
{
    while (e->receives_done == 0)
        progress(e);
    e->receives_done--;
    check(in, bytes, round);
}

int main(int argc, char **argv)
{
    struct options o = read_options(argc, argv);
    struct side s = split();
    struct end e = open_end(&s, find_provider());
    char *out = payload_buffer(o.bytes), *in = payload_buffer(o.bytes);
    expect(&e, in, o.bytes);
    meet(&s);
    struct samples samples = begin_samples(&o);
    for (uint64_t round = 1; round <= WARM_UP + o.samples; round++) {
        if (s.number == 0) {
            tell(&e, out, o.bytes, round);
            hear(&e, in, o.bytes, round);
            expect(&e, in, o.bytes);
            add_sample(&samples, round);
        } else {
            hear(&e, in, o.bytes, round);
            expect(&e, in, o.bytes);
            tell(&e, out, o.bytes, round);
        }
    }
    meet(&s);
    fi_close(&e.ep->fid);
    join(&s);
    report("libfabric", &o, &samples);
    return EXIT_SUCCESS;
}
