#!/bin/sh
# Matrix factorisation in shared memory beside a single-purpose loop (mf_yardstick.c) on the same data, one after the other,
# three times: 20,000 users, 5,000 items, 5 M ratings to train on, noise 0.30, 20 passes, 2 threads. LIBMF, which is not packaged,
# did (without biases, as here) 46.6 M ratings per second and an RMSE of 0.3290 at rank 32 on such a set, 18.2 M and 0.3291 at rank 100. Wall time: on
# a machine that is busy with other things, only the ratios mean something. Run in an empty folder.
set -eu
[ -n "${RUBATO:-}" ] || { echo "bench/mf.sh: set RUBATO to the command" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
${CC:-cc} -O3 -march=native -ffast-math -pthread -o yardstick "$here/mf_yardstick.c" -lm
./yardstick gen 20000 5000 32 5500000 0.3 train.svm test.svm

for rank in 32 100; do
    for round in 1 2 3; do
        "$RUBATO" train mf --data train.svm --valid test.svm --format libsvm --workers 2 --rank $rank --l2 0.005 --biases off --epochs 20 --json run.json --quiet
        ./yardstick run train.svm test.svm $rank 0.005 0.1 20 2 >yardstick.out
        python3 - "$rank" "$round" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open("run.json")]
wall, own, rmse = map(float, open("yardstick.out").read().split())
ours = lines[-1]["samples_per_second"] / 1e6
ours_rmse = [line for line in lines if line["event"] == "eval"][-1]["rmse"]
print(f"rank {sys.argv[1]}, round {sys.argv[2]}: mf {ours:.1f} M ratings/s, RMSE {ours_rmse:.4f}; "
      f"yardstick {wall:.1f} M, {rmse:.4f}; ratio {ours / wall:.2f}")
PYTHON
    done
done
