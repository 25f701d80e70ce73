/* The local runtime: workers are threads of this process, everything else runs on their time. All nodes live here: see
 * places.h. */
#include "runtime/places.h"

rbt_err rbt_local_run(rbt_run *run, rbt_error *error)
{
    rbt_places places;
    rbt_err err;

    rbt_places_init(&places, run, "local", NULL);
    err = rbt_places_run(&places, 0, run->topology->workers, run->topology->observers > 0, error);
    rbt_places_deinit(&places);
    return err;
}
