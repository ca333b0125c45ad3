/* What the programs share that check include/vipl.h: a program ends with success, and a last line "ok", only if every check was
 * so. It knows nothing but the header. `PROGRAM [NIC [NIC]]` names the NICs of the two sides, which may be the same.
 *
 * A check names the code that a call gives, GIVES(CODE, VipCall(...)), and where it matters the state of the VI that is
 * asked: IN(vi, STATE, CODE, VipCall(...)). docs/vipl-conformance.md names the programs. -DSPELLING_DATA compiles them with
 * Control and Data instead of CS and DS. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <vipl.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef SPELLING_DATA
#define HEAD(descriptor) ((descriptor)->Control)
#define LOCAL(descriptor, i) ((descriptor)->Data[i])
#else
#define HEAD(descriptor) ((descriptor)->CS)
#define LOCAL(descriptor, i) ((descriptor)->DS[i].Local)
#endif
#define REMOTE(descriptor) ((descriptor)->DS[0].Remote)

/* Longest that something may take that must happen, and the whole program: machines that run tests are busy. */
#ifndef SOON
#define SOON 30000ul
#endif
#define LONGEST 240u
/* How long nothing must happen to be believed not to. */
#define A_WHILE 100ul

static inline const char *code_name(VIP_RETURN code)
{
    static const char *const names[] = {
        "SUCCESS", "NOT_DONE", "INVALID_PARAMETER", "ERROR_RESOURCE", "TIMEOUT", "REJECT", "INVALID_RELIABILITY_LEVEL",
        "INVALID_MTU", "INVALID_QOS", "INVALID_PTAG", "INVALID_RDMAREAD", "DESCRIPTOR_ERROR", "INVALID_STATE",
        "ERROR_NAMESERVICE", "NO_MATCH", "NOT_REACHABLE", "ERROR_NOT_SUPPORTED",
    };
    return (size_t)code < sizeof names / sizeof *names ? names[code] : "no code at all";
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4), noreturn))
#endif
static inline void fail_at(const char *file, int line, const char *what, ...)
{
    va_list arguments;
    va_start(arguments, what);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, what, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    _exit(1);
}

/* The call gives this code. */
#define GIVES(code, call)                                                                  \
    do {                                                                                   \
        VIP_RETURN gave_ = (call);                                                         \
        if (gave_ != VIP_##code)                                                           \
            fail_at(__FILE__, __LINE__, "%s, not " #code ": %s", code_name(gave_), #call); \
    } while (0)
#define OK(call) GIVES(SUCCESS, call)

/* The same of a VI in this state. */
#define IN(vi, state, code, call)                                                                 \
    do {                                                                                          \
        if (state_of(vi) != VIP_STATE_##state)                                                    \
            fail_at(__FILE__, __LINE__, "the VI is in state %d, not " #state, (int)state_of(vi)); \
        GIVES(code, call);                                                                        \
    } while (0)

/* Says of which calls a check is that names none, for docs/vipl-conformance.md. */
#define CHECKS(code, calls) ((void)0)

#define WANT(condition)                                            \
    do {                                                           \
        if (!(condition))                                          \
            fail_at(__FILE__, __LINE__, "not so: %s", #condition); \
    } while (0)

#define WANT_EQUAL(value, expected)                                                                        \
    do {                                                                                                   \
        unsigned long long is_ = (unsigned long long)(value), should_ = (unsigned long long)(expected);    \
        if (is_ != should_)                                                                                \
            fail_at(__FILE__, __LINE__, "%s is 0x%llx, not %s (0x%llx)", #value, is_, #expected, should_); \
    } while (0)

static inline unsigned long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long)now.tv_sec * 1000ul + (unsigned long)now.tv_nsec / 1000000ul;
}

static inline void sleep_ms(unsigned long ms)
{
    struct timespec time = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    nanosleep(&time, NULL);
}

/* Waits until something is so. */
#define SOON_IS(condition)                                                         \
    do {                                                                           \
        unsigned long begun_ = now_ms();                                           \
        while (!(condition)) {                                                     \
            if (now_ms() - begun_ > SOON)                                          \
                fail_at(__FILE__, __LINE__, "does not become so: %s", #condition); \
            sleep_ms(1);                                                           \
        }                                                                          \
    } while (0)

/* The names of the two sides' NICs. */
static const char *nic_names[2] = { "VINIC", "VINIC" };

static inline void begin(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(LONGEST);
    if (count > 1)
        nic_names[0] = nic_names[1] = arguments[1];
    if (count > 2)
        nic_names[1] = arguments[2];
}

static inline int done(void)
{
    puts("ok");
    return 0;
}

static const VIP_RELIABILITY_LEVEL levels[3] = {
    VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION,
};

static inline VIP_VI_STATE state_of(VIP_VI_HANDLE vi)
{
    VIP_VI_STATE state = VIP_STATE_IDLE;
    OK(VipQueryVi(vi, &state, NULL, NULL, NULL));
    return state;
}

#endif
