/* Which libuv: 1, whose interface has been kept since. */
#include "runtime/cluster/libuv.h"

RBT_LIBRARY_DEFINE(rbt_uv, RBT_UV_FUNCTIONS, "libuv.so.1", "jobs of several processes need libuv", "libuv1");
