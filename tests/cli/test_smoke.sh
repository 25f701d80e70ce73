#!/bin/sh
# A moment of everything that runs on threads, for builds that are slow (ThreadSanitizer): generate, train under every
# protocol and rule on `local`, predict.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 gen lr --out data.svm --rows 300 --cols 40 --nnz 6 --seed 2
expect 0 convert --data data.svm --out data.cache
expect 0 info data.cache
for protocol in '--sync bsp --rule con' '--sync bsp --rule dyn --servers 2' '--sync ssp --staleness 2 --rule dyn --servers 3' \
    '--sync ssp --staleness 2 --rule dyn --servers 2 --partition-sync off --eager on' '--sync ssp --staleness 1 --rule sum' \
    '--sync asp --rule adagrad --servers 2' '--sync asp --rule sum' \
    '--sync ssp --staleness 2 --rule adarev --servers 2' '--sync ssp --rule momentum --momentum 0.5'; do
    # shellcheck disable=SC2086
    expect 0 train lr --data data.svm --valid data.svm $protocol --workers 4 --clocks 12 --lr 0.1 --verify --quiet \
        --json run.json --straggler worker=1,slow=2 --out model.rbt
    check run.json 'last["event"] == "done" and last["updates"] == 48 and 0 < last["loss"] < 0.7 and last["table_sum"] == 48'
done
expect 0 train lr --data data.svm --workers 3 --clocks 5 --encode --quiet
expect 0 compare lr --data data.svm --protocols bsp,asp/sum,ssp:3/dyn --workers 3 --clocks 4
expect 0 predict --model model.rbt --data data.svm --out predicted.txt
[ "$(wc -l <predicted.txt)" -eq 300 ] || fail 'not one prediction per row'
