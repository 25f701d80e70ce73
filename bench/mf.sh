#!/bin/sh
# Matrix factorisation in shared memory beside a single-purpose loop (mf_yardstick.c) on the same data, one after the other in turns,
# three times: 20,000 users, 5,000 items, 5 M ratings to train on, noise 0.30, 20 passes, 2 threads. `mf.sh --quick`: a fortieth of
# that, once. The regularisation is chosen by mf on a tenth of the training ratings, which it has not seen then, and used by both; the
# test ratings are looked at once, in the end. LIBMF, which is not packaged, did (without biases, as here) 46.6 M ratings per second and
# an RMSE of 0.3290 at rank 32 on such a set, 18.2 M and 0.3291 at rank 100. On a machine that is busy with other things wall time means
# nothing: ratings per second of a thread's own time then (mf: of 20 passes without that of one, in which loading is). Run
# in an empty folder.
set -eu
[ -n "${RUBATO:-}" ] || { echo "bench/mf.sh: set RUBATO to the command" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
size='20000 5000 32 5500000' rounds=3
[ "${1:-}" != --quick ] || { size='2000 1000 32 140000' rounds=1; }
${CC:-cc} -O3 -march=native -ffast-math -pthread -o yardstick "$here/mf_yardstick.c" -lm
# shellcheck disable=SC2086 # four numbers
./yardstick gen $size 0.3 train.svm test.svm
./yardstick split train.svm fit.svm valid.svm

python3 - "$RUBATO" "$rounds" <<'PYTHON'
import json, resource, statistics, subprocess, sys
rubato, rounds = sys.argv[1], int(sys.argv[2])

def own_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

def mf(data, valid, rank, l2, passes):
    """M ratings per second of wall time, ratings of a pass, seconds of all threads, RMSE."""
    before = own_seconds()
    subprocess.run([rubato, "train", "mf", "--data", data, "--valid", valid, "--format", "libsvm", "--workers", "2",
                    "--rank", str(rank), "--l2", str(l2), "--biases", "off", "--epochs", str(passes), "--eval-every", "0",
                    "--json", "run.json", "--quiet"], check=True)
    lines = [json.loads(line) for line in open("run.json")]
    ratings = sum(w["samples"] for w in lines[-1]["workers"]) / passes
    rmse = [line for line in lines if line["event"] == "eval"][-1]["rmse"]
    return lines[-1]["samples_per_second"] / 1e6, ratings, own_seconds() - before, rmse

def yardstick(rank, l2):
    out = subprocess.run(["./yardstick", "run", "train.svm", "test.svm", str(rank), str(l2), "0.1", "20", "2"], check=True,
                         capture_output=True, text=True).stdout
    return map(float, out.split())

for rank in 32, 100:
    tried = {l2: mf("fit.svm", "valid.svm", rank, l2, 20)[3] for l2 in (0.00125, 0.0025, 0.005, 0.01, 0.02, 0.04)}
    l2 = min(tried, key=tried.get)
    print(f"rank {rank}: l2 {l2} has the least RMSE on validation ratings:",
          ", ".join(f"{l}: {rmse:.4f}" for l, rmse in tried.items()), flush=True)
    ratios, own_ratios = [], []
    for turn in range(rounds):
        results = {}
        for who in ("mf", "yardstick") if turn % 2 == 0 else ("yardstick", "mf"):
            results[who] = list(yardstick(rank, l2)) if who == "yardstick" else mf("train.svm", "test.svm", rank, l2, 20)
        wall, ratings, seconds, rmse = results["mf"]
        own = 19 * ratings / max(seconds - mf("train.svm", "test.svm", rank, l2, 1)[2], 1e-9) / 1e6
        yard_wall, yard_own, yard_rmse = results["yardstick"]
        ratios.append(wall / yard_wall)
        own_ratios.append(own / yard_own)
        print(f"rank {rank}, round {turn + 1}: mf {wall:.1f} M ratings/s, {own:.1f} M per thread-second, RMSE {rmse:.4f}; "
              f"yardstick {yard_wall:.1f} M, {yard_own:.1f} M, {yard_rmse:.4f}; ratios {ratios[-1]:.2f}, {own_ratios[-1]:.2f}",
              flush=True)
    print(f"rank {rank}: mf / yardstick {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) in wall time, "
          f"{statistics.median(own_ratios):.2f} ({min(own_ratios):.2f} to {max(own_ratios):.2f}) in the threads' own", flush=True)
PYTHON
