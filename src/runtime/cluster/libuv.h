/* libuv, loaded by the first hub (base/library.h): only a job of several processes needs it.
 *
 * Called by hub.c and peers.c. Proved by tests/unit/test_hub_local.c.
 */
#ifndef RBT_RUNTIME_CLUSTER_LIBUV_H
#define RBT_RUNTIME_CLUSTER_LIBUV_H

#include <uv.h>

#include "base/library.h"

#define RBT_UV_FUNCTIONS(F)                                                                                            \
    F(uv_async_init)                                                                                                   \
    F(uv_async_send)                                                                                                   \
    F(uv_close)                                                                                                        \
    F(uv_is_closing)                                                                                                   \
    F(uv_loop_close)                                                                                                   \
    F(uv_loop_init)                                                                                                    \
    F(uv_poll_init)                                                                                                    \
    F(uv_poll_start)                                                                                                   \
    F(uv_poll_stop)                                                                                                    \
    F(uv_run)                                                                                                          \
    F(uv_timer_init)                                                                                                   \
    F(uv_timer_start)

RBT_LIBRARY_DECLARE(rbt_uv, RBT_UV_FUNCTIONS);

#endif
