/* How the two halves of `rubato doctor` talk: lines over TLS, as encrypted as the job will be. The contract is in doctor.h. */
#include "cli/doctor.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"

bool doctor_call_open(doctor_call *call, rbt_tls *tls, int fd, bool accepting, rbt_error *why)
{
    *call = (doctor_call){.fd = fd, .until_ns = rbt_now_ns() + DOCTOR_DIAL_MS * 1000000ULL};
    if (rbt_tls_open(tls, fd, accepting, &call->tls, why) == RBT_OK)
        return true;
    doctor_call_close(call);
    return false;
}

void doctor_call_close(doctor_call *call)
{
    rbt_tls_close(call->tls);
    if (call->fd >= 0)
        close(call->fd);
    *call = (doctor_call){.fd = -1};
}

static rbt_tls_state shake_hands(doctor_call *call)
{
    rbt_error why;
    rbt_tls_state state = call->is_open ? RBT_TLS_DONE : rbt_tls_handshake(call->tls, &why);

    call->is_open = state == RBT_TLS_DONE;
    return state;
}

static doctor_news news_of(doctor_call *call, rbt_tls_state state)
{
    call->waits_to_write = state == RBT_TLS_WANT_WRITE;
    return state == RBT_TLS_WANT_READ || state == RBT_TLS_WANT_WRITE ? DOCTOR_WAITS : DOCTOR_GONE;
}

doctor_news doctor_call_step(doctor_call *call)
{
    rbt_tls_state state = shake_hands(call);
    rbt_error why;

    while (state == RBT_TLS_DONE && call->n < sizeof call->line) {
        char *at = call->line + call->n;
        size_t got = 0;

        state = rbt_tls_read(call->tls, at, 1, &got, &why);
        if (got == 1 && *at == '\n') {
            *at = '\0';
            call->n = 0;
            return DOCTOR_SAYS;
        }
        if (got == 1 && (*at < ' ' || *at > '~')) /* it will be printed */
            *at = '?';
        call->n += got;
    }
    return news_of(call, state); /* a line that is longer than any of ours is the end, too */
}

/* Until the other side has something for us or takes something; false: not in time. */
static bool wait_for(const doctor_call *call, uint64_t until_ns)
{
    struct pollfd ready = {.fd = call->fd, .events = call->waits_to_write ? POLLOUT : POLLIN};
    uint64_t now_ns = rbt_now_ns();

    return now_ns < until_ns && poll(&ready, 1, (int)((until_ns - now_ns) / 1000000U) + 1) >= 0;
}

bool doctor_call_read(doctor_call *call, int timeout_ms)
{
    uint64_t until_ns = rbt_now_ns() + (uint64_t)timeout_ms * 1000000U;
    doctor_news news;

    do
        news = doctor_call_step(call);
    while (news == DOCTOR_WAITS && wait_for(call, until_ns));
    return news == DOCTOR_SAYS;
}

bool doctor_call_write(doctor_call *call, const char *line, int timeout_ms)
{
    uint64_t until_ns = rbt_now_ns() + (uint64_t)timeout_ms * 1000000U;
    char text[DOCTOR_TEXT + 1];
    size_t n = (size_t)snprintf(text, sizeof text, "%.*s\n", DOCTOR_TEXT - 2, line), done = 0;
    rbt_tls_state state;
    rbt_error why;

    do {
        size_t put = 0;

        state = shake_hands(call);
        if (state == RBT_TLS_DONE)
            state = rbt_tls_write(call->tls, text + done, n - done, &put, &why);
        done += put;
    } while (done < n && (state == RBT_TLS_DONE || news_of(call, state) == DOCTOR_WAITS) && wait_for(call, until_ns));
    return done == n;
}
