#!/bin/sh
# What went wrong once: each case is a bug that was found and mended.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$RUBATO" gen lr --rows 400 --cols 20 --nnz 5 --seed 1 --out d.svm

# The objective reported is that of the parameters saved, also when updates were still under way at the last look.
for net in lat=5ms,jitter=3ms lat=100us; do
    for seed in 1 2 3 4 5 6 7; do
        expect 0 train lr --data d.svm --l2 0 --runtime sim --workers 4 --sync ssp --staleness 5 --clocks 6 --net "$net" --seed "$seed" \
            --out m.rbt --json run.json
        expect 0 eval --model m.rbt --data d.svm
        shown=$(awk '$1 == "loss" {print $2}' "$out")
        check run.json "abs(last['loss'] - $shown) < 1e-6"
        check run.json 'last["updates"] == 24 and events("clock")[-1]["updates"] == 24'
    done
done
for turn in 1 2 3 4 5 6 7 8 9 10; do
    expect 0 train lr --data d.svm --l2 0 --workers 4 --sync bsp --clocks 4 --seed "$turn" --out m.rbt --json run.json
    expect 0 eval --model m.rbt --data d.svm
    shown=$(awk '$1 == "loss" {print $2}' "$out")
    check run.json "abs(last['loss'] - $shown) < 1e-6"
done

# BSP: a push that waited for the others when its worker died is acknowledged to the worker's next life.
for seed in 11 134 264; do
    expect 0 train lr --data d.svm --runtime sim --workers 4 --servers 4 --sync bsp --rule sum --clocks 1 \
        --straggler worker=3,slow=20000 --faults crash=3,delay=0.3,drop=0.4,within=12ms --net lat=900us --seed "$seed"
done

# --verify raises no alarm after a restart.
for seed in 1 2 3 4 5 6 7 8 9 10; do
    expect 0 train lr --data d.svm --runtime sim --workers 4 --servers 3 --sync ssp --staleness 2 --clocks 20 --verify \
        --faults crash=6,delay=0.3,within=10ms --seed "$seed"
done

# Servers without blocks do not see larger gaps than there are.
printf '1 1:1\n-1 1:2\n' >one.svm
for seed in 1 2 3 4 5; do
    expect 0 train lr --data one.svm --no-bias --runtime sim --workers 2 --servers 4 --sync ssp --staleness 1 --rule dyn --clocks 20 \
        --faults delay=0.3,drop=0.1 --seed "$seed" --json run.json
    check run.json 'last["max_gap"] <= 1'
done

# Gradient steps on rows whose neighbours are alike, with features of very different scale, do not end each pass near what
# suits a few neighbours.
for case in '4160 1' '16640 4'; do # 64 rows are left over by groups of neighbours, for each worker
    workers=${case#* }
    awk -v n="${case% *}" 'BEGIN { srand(7); for (i = 0; i < n; i++) {
        x = exp(3 * rand()); y = rand(); z = rand()
        label = 100 * sin(18.85 * i / n) + 5 * x + 30 * y + 20 * rand()
        printf "%.6g 1:%.6g 2:%.6g 3:%.6g\n", label, x, 1 + y, 0.01 * z } }' >places.svm
    expect 0 train linear --data places.svm --optimizer newton --quiet --json run.json
    tail -n 1 run.json >runs.json
    for seed in 1 2 3 4 5 6; do
        expect 0 train linear --data places.svm --optimizer sgd --workers "$workers" --epochs 40 --tolerance 0 --seed $seed \
            --quiet --json run.json
        grep '"event":"clock"' run.json | tail -n 30 >>runs.json
    done
    check runs.json 'sum(e["loss"] for e in lines[1:]) / 180 < 1.13 * first["loss"]'
done

expect 2 train lr --data d.svm --epochs 1e300
says '--epochs'
