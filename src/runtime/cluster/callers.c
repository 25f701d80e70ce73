/* Callers of whom nobody knows yet who they are: there is room for so many that greet at the same time, and what is said of them in the
 * log is little, however many call. Part of the hub (hub.h), on its thread. Proved by tests/unit/test_hub_refusals_local.c. */
#include "runtime/cluster/hub_state.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/time.h"

#define GREETING_MOST 256  /* callers that greet at the same time; for one more the oldest is turned away */
#define NOTES_MOST    20   /* sentences about callers ... */
#define NOTES_MS      5000 /* ... in this time; of more only how many they were */

void rbt_callers_tell(rbt_hub *hub, const char *format, ...)
{
    char text[sizeof((rbt_error *)NULL)->text];
    va_list list;

    if (hub->notes == 0)
        hub->notes_ns = rbt_now_ns();
    if (hub->notes++ >= NOTES_MOST)
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    rbt_log_event(&hub->log, RBT_LOG_WARNING, "cluster", "%s", text);
}

void rbt_callers_tick(rbt_hub *hub, uint64_t now_ns)
{
    if (hub->notes == 0 || now_ns < hub->notes_ns + (uint64_t)NOTES_MS * RBT_NS_PER_MS)
        return;
    if (hub->notes > NOTES_MOST)
        rbt_log_event(&hub->log, RBT_LOG_WARNING, "cluster", "%u more callers were turned away or cut off",
                      hub->notes - NOTES_MOST);
    hub->notes = 0;
}

void rbt_callers_make_room(rbt_hub *hub)
{
    rbt_conn *oldest = NULL;

    if (hub->greeting < GREETING_MOST)
        return;
    for (rbt_conn *c = hub->conns; c != NULL; c = c->next) /* the newest come first */
        if (c->link->accepting && !c->has_session)
            oldest = c;
    RBT_ASSERT(oldest != NULL);
    rbt_link_close(
        oldest->link, RBT_E_LIMIT,
        "%s was turned away: it had not greeted for %llu ms, and %d callers do not; does something flood this "
        "port?",
        oldest->link->name, (unsigned long long)((rbt_now_ns() - oldest->since_ns) / RBT_NS_PER_MS), GREETING_MOST);
    rbt_conn_broke(oldest);
}
