/* Ctrl-C while a file is being written. The contract stands in cli.h.
 *
 * A signal handler has nothing but global state to tell by; `stop` below is all there is.
 */
#include "cli/cli.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/error.h"

static atomic_bool stop;

static void on_signal(int number)
{
    (void)number;
    if (atomic_exchange(&stop, true)) /* the second time: at once */
        _exit(rbt_err_exit_code(RBT_E_INTERRUPTED));
}

const atomic_bool *cli_stop_flag(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &stop;
}
