/* How a process of a job ends that is over, whatever it is doing: to read data, or to work out a loss, may take long and cannot be
 * stopped, and nobody waits for it any more. The contract stands in cli.h. Proved by tests/cluster/test_processes_interrupt.sh. */
#include "cli/cli.h"

#include <pthread.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"

#define GRACE_S 3 /* in which it can say goodbye and end by itself */

typedef struct leaving {
    const cli_command *command;
    rbt_error why;
} leaving;

static void *leave(void *argument)
{
    const leaving *l = argument;

    sleep(GRACE_S);
    if (l->command != NULL && l->why.code != RBT_OK)
        (void)cli_fail(l->command, &l->why);
    _exit(rbt_err_exit_code(l->why.code));
}

void cli_leave_soon(const cli_command *command, const rbt_error *why)
{
    leaving *l = rbt_alloc(1, sizeof *l);
    pthread_t thread;

    *l = (leaving){.command = command, .why = *why};
    if (pthread_create(&thread, NULL, leave, l) == 0)
        pthread_detach(thread);
    else
        rbt_free(l);
}
