#!/bin/sh
# Hop in the simulator: 16 peers on a ring-based graph, mini-batches of 128 rows, on generated data like webspam's and, when
# RBT_BENCH_DATA names a folder with it, on imdb. Iteration times and times to a target loss, under random slowdowns (6x
# with probability 1/16) and with one peer 4x slower for good. Deterministic: the same table on every machine. Run in an empty folder.
# What the figures mean and what the paper has: docs/reproduction.md.
set -eu
[ -n "${RUBATO:-}" ] || { echo "bench/hop.sh: set RUBATO to the command" >&2; exit 2; }
hop='--sync hop --graph ring-based --max-gap 8'
common='--runtime sim --workers 16 --batch 128 --batches-per-clock 1 --eval-every 10 --cost sample=100us,nnz=2ns'

# run NAME OPTIONS...: one line: virtual seconds per iteration, and to the target
run()
{
    name=$1
    shift
    code=0
    # shellcheck disable=SC2086 # options
    "$RUBATO" train lr --data "$data" --lr "$lr" --target-loss "$target" --clocks 3000 $common "$@" --json run.json --quiet \
        >/dev/null 2>&1 || code=$?
    tail -n 1 run.json | awk -v name="$name" -v code="$code" '
        function value(key) { return match($0, "\"" key "\":[^,}]*") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) : "-" }
        { printf "  %-34s %8.2f ms per iteration  %s\n", name, 1000 * value("seconds") / value("clocks"),
          code == 0 ? sprintf("%8.2f s to the target", value("seconds")) : "target not reached" }'
}

measure()
{
    echo "$1, target loss $target, step size $lr, 10 Gbit/s, 100 us"
    net='--net bw=10Gbit,lat=100us'
    random='--straggler p=0.0625,slow=6'
    fixed='--straggler worker=3,slow=4'
    # shellcheck disable=SC2086 # options
    {
        run "nobody slow: standard" --sync hop --graph ring-based $net
        run "random 6x: standard" --sync hop --graph ring-based $net $random
        run "random 6x: NOTIFY-ACK" --sync hop --graph ring-based --notify-ack $net $random
        run "random 6x: backup 1" $hop --backup 1 $net $random
        run "random 6x: staleness 5" $hop --staleness 5 $net $random
        run "random 6x: backup 1, staleness 5" $hop --backup 1 --staleness 5 $net $random
        run "random 6x: all-reduce" --sync allreduce $net $random
        run "one 4x: standard" --sync hop --graph ring-based $net $fixed
        run "one 4x: backup 1" $hop --backup 1 $net $fixed
        run "one 4x: backup 1, skip 10" --sync hop --graph ring-based --max-gap 12 --backup 1 --skip 10 $net $fixed
        run "1 Gbit/s: hop, standard" --sync hop --graph ring-based --net bw=1Gbit,lat=100us
        run "1 Gbit/s: all-reduce" --sync allreduce --net bw=1Gbit,lat=100us
        run "1 Gbit/s: BSP, one server" --sync bsp --servers 1 --net bw=1Gbit,lat=100us
    }
}

data=webspam.cache lr=4 target=0.62
[ -e "$data" ] || "$RUBATO" gen lr --rows 100000 --cols 50000 --nnz 80 --seed 5 --to cache --out "$data" >/dev/null
measure "generated, 100 k x 50 k, 80 per row"
for name in imdb.tfidf.train.libsvm imdb.tfidf.train.libsvm.zst; do
    if [ -e "${RBT_BENCH_DATA:-/nowhere}/$name" ]; then
        data=$RBT_BENCH_DATA/$name lr=4 target=0.45
        measure imdb
        break
    fi
done
