#!/bin/sh
# What managed communication saves (Wei et al. 2015), in the simulator: clocks until a target with updates sent at the ends of clocks only, and
# with early sends within a budget. Topic models on 16 nodes, by budget and priority; matrix factorisation by plain SGD on
# 8, each at its best step size of a grid. Data are generated: a matter of bits, not of this machine's speed.
#
#   sh bench/comm.sh [lda|mf]...      default: both; RUBATO names the command
#
# A line per run: clocks to the target (- never), megabytes sent up to the last clock, the settings.
set -eu
rubato=${RUBATO:-rubato}
[ $# -gt 0 ] || set -- lda mf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# measure TARGET LABEL TRAIN-ARGUMENTS...: prints the line and leaves the clocks (or a large number) in $clocks.
measure() {
    target=$1
    label=$2
    shift 2
    "$rubato" train "$@" --json "$work/run" --quiet >"$work/out" 2>&1 || true
    clocks=$(grep '"event":"clock"' "$work/run" | awk -v target="$target" '
        { clock = $0; gsub(/.*"clock_min":/, "", clock); gsub(/[,}].*/, "", clock); gsub(/.*"loss":/, ""); gsub(/[,}].*/, "")
          if (clock + 0 > 1 && $0 + 0 <= target + 0 && $0 != "null") { print clock - 1; exit } }')
    bytes=$(grep '"event":"clock"' "$work/run" | tail -n 1 | sed 's/.*"bytes_sent":\([0-9]*\).*/\1/')
    printf '%6s clocks %6d MB  %s\n' "${clocks:--}" "$((bytes / 1000000))" "$label"
    clocks=${clocks:-1000000}
}

run_lda() {
    target=6.9
    "$rubato" gen docs --out "$work/docs" --rows 2000 --cols 1000 --topics 20 --seed 3 >/dev/null
    echo "lda: 16 workers, 4 servers, 20 topics, staleness 2, objective $target"
    set -- lda --data "$work/docs" --runtime sim --workers 16 --servers 4 --sync ssp --staleness 2 --eager on --topics 20 \
        --cut documents --batch 100% --clocks 30 --cost nnz=200us --net bw=1Gbit,lat=100us
    measure "$target" "clocks only" "$@"
    alone=$clocks
    measure "$target" "clocks only, in pieces" "$@" --pieces 32
    [ "$clocks" -ge "$alone" ] || alone=$clocks
    for budget in 1Mbit 5Mbit 20Mbit; do
        for priority in random relative; do
            measure "$target" "$budget, $priority" "$@" --pieces 32 --budget "$budget" --priority "$priority"
        done
    done
    echo "       20Mbit to clocks only: $(awk "BEGIN { printf \"%.2f\", $clocks / $alone }")"
}

run_mf() {
    target=0.8
    "$rubato" gen ratings --out "$work/ratings" --rows 50000 --users 1000 --items 500 --rank 8 --seed 3 >/dev/null
    echo "mf: 8 workers, 2 servers, rank 8, plain SGD, staleness 2, objective $target, best step size"
    set -- mf --data "$work/ratings" --runtime sim --workers 8 --servers 2 --sync ssp --staleness 2 --rank 8 \
        --step plain --clocks 60 --pieces 32 --cost sample=40us --net bw=1Gbit,lat=100us
    for budget in none 2Mbit 20Mbit 200Mbit; do
        best=1000000
        for lr in 0.0025 0.005 0.01 0.02 0.04; do
            if [ "$budget" = none ]; then
                measure "$target" "clocks only, --lr $lr" "$@" --lr "$lr"
            else
                measure "$target" "$budget, --lr $lr" "$@" --lr "$lr" --budget "$budget"
            fi
            [ "$clocks" -ge "$best" ] || best=$clocks
        done
        [ "$budget" != none ] || alone=$best
        echo "       best $best; to clocks only: $(awk "BEGIN { printf \"%.2f\", $best / $alone }")"
    done
}

for part; do
    "run_$part"
done
