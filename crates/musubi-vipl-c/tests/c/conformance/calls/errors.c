/* Error handlers: what they are told of, with what; which thread; setting another one; none; what they may call. */
#include "sides.h"

#include <fcntl.h>

static side_t one, other;
static pthread_t starter;

/* An error that anybody can make at any time: a crooked descriptor. */
static void make_one(side_t *side)
{
    VIP_DESCRIPTOR *crooked = (VIP_DESCRIPTOR *)(void *)(side->memory + 4);
    GIVES(INVALID_PARAMETER, VipPostRecv(side->vi, crooked, side->handle));
}

static void contents(void)
{
    VIP_ERROR_DESCRIPTOR error;
    static ear_t ear;
    listen_to(&other, &ear);
    connect_sides(&one, &other, VIP_SERVICE_UNRELIABLE);
    make_one(&other);
    HEARS(&ear, POST_DESC, other.vi, &error);
    WANT(error.NicHandle == other.nic && error.ViHandle == other.vi);
    WANT(error.DescriptorPtr == (VIP_DESCRIPTOR *)(void *)(other.memory + 4));
    WANT_EQUAL(error.ResourceCode, VIP_RESOURCE_DESCRIPTOR);
    WANT_EQUAL(error.OpCode, 0);
    post_send(&one, prepare(&one, 0, 0, 64));
    HEARS(&ear, RECVQ_EMPTY, other.vi, &error);
    WANT_EQUAL(error.ResourceCode, VIP_RESOURCE_VI);
    WANT_EQUAL(error.OpCode, VIP_STATUS_OP_RECEIVE);
    WANT(error.DescriptorPtr == NULL && error.CQHandle == NULL);
    SENT(&one, descriptor_of(&one, 0), VIP_STATUS_OP_SEND);
    /* An orderly end is the other side's loss, not one's own. */
    OK(VipDisconnect(one.vi));
    HEARS(&ear, CONN_LOST, other.vi, &error);
    WANT_EQUAL(error.ResourceCode, VIP_RESOURCE_VI);
    OK(VipDisconnect(other.vi));
    sleep_ms(A_WHILE);
    WANT_EQUAL(heard_count(&ear), 0);
    end_sides(&one, &other);
}

/* Only who has caused an error hears of it. */
static void apart(void)
{
    static ear_t ear, far_ear;
    listen_to(&one, &ear);
    listen_to(&other, &far_ear);
    one.vi = create_vi(&one, VIP_SERVICE_UNRELIABLE);
    make_one(&one);
    HEARS(&ear, POST_DESC, one.vi, NULL);
    sleep_ms(A_WHILE);
    WANT(heard_count(&ear) == 0 && heard_count(&far_ear) == 0);
    OK(VipDestroyVi(one.vi));
}

/* Without a handler it is said on stderr. */
static void said(void)
{
    char text[256];
    int ends[2], screen = dup(STDERR_FILENO);
    ssize_t length;
    one.vi = create_vi(&one, VIP_SERVICE_UNRELIABLE);
    WANT(screen >= 0 && pipe(ends) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    WANT(dup2(ends[1], STDERR_FILENO) >= 0 && close(ends[1]) == 0);
    make_one(&one);
    length = read(ends[0], text, sizeof text - 1);
    WANT(dup2(screen, STDERR_FILENO) >= 0 && close(screen) == 0 && close(ends[0]) == 0);
    WANT(length > 0 && memchr(text, '\n', (size_t)length) != NULL);
    OK(VipDestroyVi(one.vi));
}

/* A later handler takes the former's place; NULL takes it away. */
static void replaced(void)
{
    static ear_t first, second;
    listen_to(&one, &first);
    listen_to(&one, &second);
    one.vi = create_vi(&one, VIP_SERVICE_UNRELIABLE);
    make_one(&one);
    HEARS(&second, POST_DESC, one.vi, NULL);
    WANT_EQUAL(heard_count(&first), 0);
    GIVES(SUCCESS, VipErrorCallback(one.nic, NULL, NULL));
    make_one(&one);
    sleep_ms(A_WHILE);
    WANT_EQUAL(heard_count(&second), 0);
    OK(VipDestroyVi(one.vi));
}

static volatile int reconnect_me;

/* A handler may call everything: here it makes its VI usable again. */
static void mend(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    VIP_VI_STATE state;
    (void)context;
    WANT(!pthread_equal(pthread_self(), starter));
    if (error->ErrorCode != VIP_ERROR_CONN_LOST)
        return;
    GIVES(SUCCESS, VipQueryVi(error->ViHandle, &state, NULL, NULL, NULL));
    WANT_EQUAL(state, VIP_STATE_ERROR);
    GIVES(SUCCESS, VipDisconnect(error->ViHandle));
    GIVES(SUCCESS, VipPostRecv(error->ViHandle, prepare(&other, 9, 0, 64), other.handle));
    reconnect_me = 1;
}

static void calls_from_handlers(void)
{
    GIVES(SUCCESS, VipErrorCallback(other.nic, NULL, mend));
    connect_sides(&one, &other, VIP_SERVICE_RELIABLE_DELIVERY);
    OK(VipDisconnect(one.vi));
    SOON_IS(reconnect_me);
    connect_vis(&one, one.vi, &other, other.vi);
    post_send(&one, prepare(&one, 0, 0, 8));
    RECEIVED(&other, descriptor_of(&other, 9), 0);
    GIVES(SUCCESS, VipErrorCallback(other.nic, NULL, NULL));
    end_sides(&one, &other);
}

int main(int count, char **arguments)
{
    begin(count, arguments);
    /* Whoever runs this may have silenced the library. */
    WANT(setenv("MUSUBI_DEBUG", "1", 1) == 0);
    starter = pthread_self();
    open_side(&one, nic_names[0]);
    open_side(&other, nic_names[1]);
    said();
    contents();
    apart();
    replaced();
    calls_from_handlers();
    close_side(&one);
    close_side(&other);
    return done();
}
