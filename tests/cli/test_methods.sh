#!/bin/sh
# Methods from the command line: k-means finds what is there, gives the same bits on every runtime under BSP, keeps its
# counts exact, and its model is predicted with, evaluated, described and exported. Each method's own test has the rest.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# four clusters, far apart
awk 'BEGIN { for (r = 0; r < 400; r++) { c = r % 4; x = (c % 2) * 10 + (r * 7 % 11) / 11; y = int(c / 2) * 10 + (r * 5 % 13) / 13
    printf "%d 1:%.4f 2:%.4f\n", c, x + 1, y + 1 } }' >four.svm

for runtime in local sim; do
    expect 0 train kmeans --data four.svm --clusters 4 --workers 3 --sync bsp --epochs 6 --runtime $runtime \
        --out $runtime.rbt --json $runtime.json --quiet
    check $runtime.json 'last["table_sum"] == 400 and last["loss"] < 1 and last["clocks"] == 6'
done
expect 0 launch --local 3 -- train kmeans --data four.svm --clusters 4 --workers 3 --sync bsp --epochs 6 \
    --json cluster.json --quiet
cat cluster.json >>sim.json
cat sim.json >>local.json
check local.json 'len({l["param_hash"] for l in lines if l["event"] == "done"}) == 1'
cmp local.rbt sim.rbt || fail 'the models of two runtimes differ'

# processes that have their own rows and a sample of all: 200 per cluster, of more; from text, a cache, and compressed
"$RUBATO" gen lr --out many.svm --rows 1500 --cols 60 --nnz 9 --seed 4
expect 0 convert --data many.svm --out many.cache
gzip -kn many.svm
for start in plusplus random; do
    expect 0 train kmeans --data many.svm --clusters 4 --workers 3 --sync bsp --start $start --epochs 4 --json many.json --quiet
    for data in many.svm many.cache many.svm.gz; do
        expect 0 launch --local 3 -- train kmeans --data $data --clusters 4 --workers 3 --sync bsp --start $start --epochs 4 \
            --json cluster.json --quiet
        cat cluster.json >>many.json
    done
    check many.json 'len({l["param_hash"] for l in lines if l["event"] == "done"}) == 1'
    check many.json 'len({str([(w["rows"], w["nonzeros"]) for w in l["workers"]]) for l in lines if l["event"] == "done"}) == 1'
done

# each true cluster is one found cluster
expect 0 predict --model local.rbt --data four.svm --out found
cut -d' ' -f1 four.svm | paste - found | sort -u >pairs
[ "$(wc -l <pairs)" -eq 4 ] || fail 'rows of one cluster are not together'

# mini-batches, other protocols, any start
expect 0 train kmeans --data four.svm --clusters 4 --workers 3 --sync ssp --staleness 2 --batch 10% --epochs 5 --json b.json --quiet
check b.json 'last["clocks"] == 50 and last["table_sum"] == 400 and last["loss"] < 1'
expect 0 train kmeans --data four.svm --clusters 4 --workers 3 --sync asp --start random --epochs 5 --json b.json --quiet
check b.json 'last["table_sum"] == 400'
expect 0 train kmeans --data four.svm --clusters 4 --workers 3 --target-loss 1 --json b.json --quiet
check b.json 'last["reached"]'
expect 3 train kmeans --data four.svm --clusters 4 --workers 3 --target-loss 0.001 --epochs 3 --quiet
expect 0 train kmeans --data four.svm --clusters 4 --valid four.svm --json b.json --quiet
check b.json 'abs(events("eval")[-1]["loss"] - last["loss"]) < 0.01 and "rmse" not in events("eval")[-1]'
expect 0 train kmeans --data four.svm --clusters 4 --valid four.svm
prints 'validation loss 0.'

# what models are verified by, methods are, too, wherever there are servers
"$RUBATO" gen ratings --out ratings.dat --rows 400 --users 60 --items 40 --seed 2
"$RUBATO" gen docs --out docs.txt --rows 40 --cols 60 --nnz 20 --seed 2
for method in 'kmeans --data four.svm --clusters 4' 'l1lr --data four.bin --l1 0.01 --epochs 5' 'lasso --data four.svm --l1 0.01 --epochs 5' \
    'lda --data docs.txt --topics 3 --epochs 3' 'mf --data ratings.dat --epochs 3' 'sketch --data four.svm --events-per-clock 30'; do
    sed 's/^[23]/1/' four.svm >four.bin
    for how in '--sync bsp' '--sync ssp --staleness 1 --runtime sim --straggler worker=0,slow=4' '--sync asp'; do
        # shellcheck disable=SC2086
        expect 0 train $method --workers 3 --verify $how --quiet
    done
    # shellcheck disable=SC2086
    expect 0 launch --local 3 -- train $method --sync ssp --verify --quiet
done
expect 2 train mf --data ratings.dat --sync hogwild --verify
says '--verify makes no sense with --sync hogwild'

# the model in use
expect 0 info local.rbt
prints 'kmeans (clusters around their means)'
prints '0: 100 rows'
expect 0 eval --model local.rbt --data four.svm
prints 'distance'
expect 0 eval --model local.rbt --data four.svm --json e.json
check e.json 'last["rows"] == 400 and last["distance"] < 1'
expect 0 eval --model local.rbt --data four.svm --metric distance --baseline local.rbt --json e.json
check e.json 'last["ratio"]["distance"] == 1 and last["baseline"]["distance"] == last["distance"]'
expect 2 eval --model local.rbt --data four.svm --metric accuracy
says "--metric 'accuracy' is none of a model of kmeans, which has loss, distance"
expect 2 predict --model local.rbt --data four.svm --as probability
says '--as makes no sense'
expect 0 export --model local.rbt --format json --out m.json
check m.json 'len(last["means"]) == 4 and sum(last["sizes"][0]) == 400'
expect 0 export --model local.rbt --format text --out m.txt
[ "$(grep -c . m.txt)" -eq 9 ] || fail 'text export'
expect 0 export --model local.rbt --format npy --array sizes --out m.npy
[ "$(head -c 6 m.npy | tail -c 5)" = NUMPY ] || fail 'npy export'
expect 2 export --model local.rbt --format npy --array nothing --out m.npy
says "no array 'nothing'"
expect 2 export --model local.rbt --format text --array sizes --out m.txt
says '--array chooses'
expect 2 export --model local.rbt --format npy --vocab m.txt --out m.npy
says '--vocab'
expect 2 export --model local.rbt --format liblinear --out m.txt
says 'npy, json or text'

# slips
expect 2 train kmeans --data four.svm --clusters 0
says '--clusters 0 is out of range; give a whole number from 1'
expect 2 train kmeans --data four.svm --clusters 401 --workers 1
says 'only 400 rows'
expect 2 train kmeans --data four.svm --clustres 4
says "did you mean '--clusters'?"
expect 2 train kmeans --data four.svm --start far
says 'choose one of plusplus|random'
expect 2 train kmeans --data four.svm --set topics=3
says "kmeans has no option '--topics'"
expect 2 train lr --data four.svm --clusters 4
says 'lr has no options of its own'
expect 2 train kmeans --data four.svm --sync hogwild
says 'kmeans needs bsp, ssp or asp'
expect 2 train kmeans --data four.svm --optimizer adam
says '--optimizer makes no sense for kmeans'
expect 2 train kmeans --data four.svm --runtime sim --faults crash=2
says 'cannot be replaced'
expect 2 train kmean --data four.svm
says "did you mean 'kmeans'?"
expect 1 train ./nothing.so --data four.svm
says 'nothing.so cannot be loaded'
printf 'x' | dd of=local.rbt bs=1 seek=40 conv=notrunc 2>/dev/null
expect 1 predict --model local.rbt --data four.svm
says 'damaged'
expect 0 train --help
prints '--clusters N'
