/* Ctrl-C while a file is being written, and one that is told twice. The contract stands in cli.h. Proved by tests/cli/test_gen.sh
 * and test_train.sh.
 *
 * A signal handler has nothing but global state to tell by; `stop` and `told_ns` below are all there is.
 */
#include "cli/cli.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"

#define ECHO_NS 200000000 /* nobody means it twice so soon */

static atomic_bool stop;
static _Atomic uint64_t told_ns[SIGTERM + 1]; /* when each signal came first */

_Static_assert(SIGINT < SIGTERM && SIGHUP < SIGTERM, "all have their place in told_ns");

bool cli_signal_is_echo(int number)
{
    uint64_t now = rbt_now_ns(), first = 0;

    return !atomic_compare_exchange_strong(&told_ns[number], &first, now) && now < first + ECHO_NS;
}

static void on_signal(int number)
{
    if (cli_signal_is_echo(number))
        return;
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
