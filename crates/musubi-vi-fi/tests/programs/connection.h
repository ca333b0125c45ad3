/* Two processes of this machine that are connected through the provider `vi`, and how each waits.
 *
 * Whatever is not as expected ends the process with 1 and a line that says where. No wait is longer than WAIT_MS. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <arpa/inet.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 60000
#define REGION_BYTES 65536
#define MESSAGE_BYTES 4096

#define EXPECT(what)                                                                      \
    do {                                                                                  \
        if (!(what)) {                                                                    \
            fprintf(stderr, "%s:%d (%s): not so: %s\n", __FILE__, __LINE__, role, #what); \
            _exit(1);                                                                     \
        }                                                                                 \
    } while (0)
/* For calls that answer 0, or less than it. */
#define DO(call)                                                                                   \
    do {                                                                                           \
        long answer_ = (long)(call);                                                               \
        if (answer_ != 0) {                                                                        \
            fprintf(stderr, "%s:%d (%s): %s: %s\n", __FILE__, __LINE__, role, #call, fi_strerror((int)-answer_)); \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static const char *role = "?";
/* Whether to wait by `poll`, instead of in the library. */
static int by_descriptor;

/* What the server tells with its answer. */
struct answer {
    uint64_t address;
    uint64_t key;
    char text[16];
};

struct side {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_eq *eq;
    struct fid_cq *cq;
    struct fid_pep *passive;
    struct fid_ep *ep;
    struct fid_mr *mr;
    char *memory;
    struct answer peer;
};

static void open_side(struct side *side, uint16_t port) {
    struct fi_info *hints = fi_allocinfo();
    hints->ep_attr->type = FI_EP_MSG;
    hints->caps = FI_MSG | FI_RMA;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->fabric_attr->prov_name = strdup("vi");
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    DO(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", port ? service : NULL, 0, hints, &side->info));
    fi_freeinfo(hints);
    EXPECT(strcmp(side->info->fabric_attr->prov_name, "vi") == 0);
    DO(fi_fabric(side->info->fabric_attr, &side->fabric, NULL));
    DO(fi_domain(side->fabric, side->info, &side->domain, NULL));
    enum fi_wait_obj wait = by_descriptor ? FI_WAIT_FD : FI_WAIT_UNSPEC;
    struct fi_eq_attr eq = {.wait_obj = wait, .flags = FI_WRITE};
    DO(fi_eq_open(side->fabric, &eq, &side->eq, NULL));
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = wait, .size = 262144};
    DO(fi_cq_open(side->domain, &cq, &side->cq, NULL));
    side->memory = calloc(1, REGION_BYTES);
    uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    DO(fi_mr_reg(side->domain, side->memory, REGION_BYTES, access, 0, 0, 0, &side->mr, NULL));
}

/* Sleeps until the descriptor of an object can be read, unless there is something already. */
static void sleep_for(struct side *side, struct fid *fid) {
    struct pollfd poll_fd = {.events = POLLIN};
    DO(fi_control(fid, FI_GETWAIT, &poll_fd.fd));
    int may = fi_trywait(side->fabric, &fid, 1);
    EXPECT(may == 0 || may == -FI_EAGAIN);
    EXPECT(may != 0 || poll(&poll_fd, 1, WAIT_MS) == 1);
}

/* The next event, and how many bytes came with it; -FI_EAVAIL if it is an error. */
static ssize_t next_event(struct side *side, uint32_t *kind, void *to, size_t bytes) {
    ssize_t got = by_descriptor ? -FI_EAGAIN : fi_eq_sread(side->eq, kind, to, bytes, WAIT_MS, 0);
    for (int round = 0; by_descriptor && got == -FI_EAGAIN && round < 1000; round++) {
        sleep_for(side, &side->eq->fid);
        got = fi_eq_read(side->eq, kind, to, bytes, 0);
    }
    return got;
}

/* The next completion: 1, or -FI_EAVAIL if it is an error. */
static ssize_t next_completion(struct side *side, struct fi_cq_data_entry *entry) {
    ssize_t got = by_descriptor ? -FI_EAGAIN : fi_cq_sread(side->cq, entry, 1, NULL, WAIT_MS);
    for (int round = 0; by_descriptor && got == -FI_EAGAIN && round < 1000; round++) {
        sleep_for(side, &side->cq->fid);
        got = fi_cq_read(side->cq, entry, 1);
    }
    return got;
}

static void expect_event(struct side *side, uint32_t expected) {
    uint32_t kind = 0;
    struct fi_eq_cm_entry entry;
    EXPECT(next_event(side, &kind, &entry, sizeof entry) == (ssize_t)sizeof entry);
    EXPECT(kind == expected && entry.fid == &side->ep->fid);
}

static void make_endpoint(struct side *side, struct fi_info *info) {
    DO(fi_endpoint(side->domain, info, &side->ep, side));
    DO(fi_ep_bind(side->ep, &side->eq->fid, 0));
    DO(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
    DO(fi_ep_bind(side->ep, &side->cq->fid, FI_RECV));
    DO(fi_enable(side->ep));
}

/* The server's port, written into a pipe. */
static void start_listening(struct side *side, int to) {
    open_side(side, 0);
    DO(fi_passive_ep(side->fabric, side->info, &side->passive, NULL));
    DO(fi_pep_bind(side->passive, &side->eq->fid, 0));
    size_t data_bytes = 0, size = sizeof data_bytes;
    DO(fi_getopt(&side->passive->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &data_bytes, &size));
    EXPECT(data_bytes >= sizeof(struct answer));
    DO(fi_listen(side->passive));
    struct sockaddr_in name;
    size = sizeof name;
    DO(fi_getname(&side->passive->fid, &name, &size));
    uint16_t port = ntohs(name.sin_port);
    EXPECT(write(to, &port, sizeof port) == sizeof port);
}

/* Who asks, with what it said. */
static struct fi_info *next_request(struct side *side) {
    char room[sizeof(struct fi_eq_cm_entry) + 32] = {0};
    uint32_t kind = 0;
    struct fi_eq_cm_entry *entry = (struct fi_eq_cm_entry *)room;
    EXPECT(next_event(side, &kind, room, sizeof room) == (ssize_t)(sizeof *entry + 8));
    EXPECT(kind == FI_CONNREQ && memcmp(entry->data, "request", 8) == 0);
    return entry->info;
}

static void accept_request(struct side *side) {
    struct answer answer = {(uintptr_t)side->memory, fi_mr_key(side->mr), "welcome"};
    DO(fi_accept(side->ep, &answer, sizeof answer));
    expect_event(side, FI_CONNECTED);
}

static void ask(struct side *side, int from) {
    uint16_t port = 0;
    EXPECT(read(from, &port, sizeof port) == sizeof port);
    open_side(side, port);
    make_endpoint(side, side->info);
}

static void connect_side(struct side *side) {
    char room[sizeof(struct fi_eq_cm_entry) + sizeof side->peer] = {0};
    struct fi_eq_cm_entry *entry = (struct fi_eq_cm_entry *)room;
    uint32_t kind = 0;
    DO(fi_connect(side->ep, side->info->dest_addr, "request", 8));
    EXPECT(next_event(side, &kind, room, sizeof room) == (ssize_t)sizeof room && kind == FI_CONNECTED);
    memcpy(&side->peer, entry->data, sizeof side->peer);
    EXPECT(strcmp(side->peer.text, "welcome") == 0);
}

/* Nothing is left that would keep anything open. */
static void close_side(struct side *side) {
    if (side->ep)
        DO(fi_close(&side->ep->fid));
    if (side->passive)
        DO(fi_close(&side->passive->fid));
    DO(fi_close(&side->mr->fid));
    DO(fi_close(&side->cq->fid));
    DO(fi_close(&side->eq->fid));
    DO(fi_close(&side->domain->fid));
    DO(fi_close(&side->fabric->fid));
    fi_freeinfo(side->info);
    free(side->memory);
}

/* Byte `at` of message `number`. */
static char byte_of(int number, size_t at) {
    return (char)(number * 31 + at * 7 + at / 256);
}

static void fill(char *to, size_t bytes, int number) {
    for (size_t at = 0; at < bytes; at++)
        to[at] = byte_of(number, at);
}

static void expect_bytes(const char *from, size_t bytes, int number) {
    for (size_t at = 0; at < bytes; at++)
        EXPECT(from[at] == byte_of(number, at));
}

#endif
