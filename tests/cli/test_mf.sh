#!/bin/sh
# Matrix factorisation from the command line: learns generated ratings in shared memory and with servers, gives the same bits
# on every runtime under BSP, and its model is predicted with, evaluated, described, and recommends.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 gen ratings --users 300 --items 120 --rows 9000 --rank 3 --noise 0.2 --seed 5 --out all.dat
awk 'NR % 10 == 0' all.dat >test.dat
awk 'NR % 10 != 0' all.dat >train.dat

# in shared memory, which is what one machine gets
expect 0 train mf --data train.dat --valid test.dat --workers 2 --rank 4 --l2 0.02 --epochs 30 --out m.rbt --json m.json --quiet
check m.json 'first["sync"] == "hogwild" and last["clocks"] == 30 and events("eval")[-1]["rmse"] < 0.5'
check m.json 'len(events("eval")) == 30 and all(abs(e["loss"] - e["rmse"] ** 2) < 1e-6 and e["mae"] > 0 for e in events("eval"))'
check m.json 'sum(w["rows"] for w in last["workers"]) == 300 and sum(w["samples"] for w in last["workers"]) == 30 * 8100'
check m.json 'last["parameter_bytes"] >= 300 * (4 + 1) * 4' # of users alone
check m.json 'events("clock")[0]["loss"] > 2 * last["loss"]'
for run in 1 2; do
    expect 0 train mf --data train.dat --sync sequential --rank 4 --epochs 3 --out s$run.rbt --quiet
done
cmp s1.rbt s2.rbt || fail 'one worker does not give the same bits twice'

# what was best on other ratings is kept; on servers these are looked at when all is done
for sync in hogwild 'hop --workers 2'; do
    # shellcheck disable=SC2086
    expect 0 train mf --data train.dat --valid test.dat --rank 30 --l2 0 --epochs 300 --patience 3 --sync $sync --out p.rbt --json p.json --quiet
    check p.json 'last["clocks"] < 300 and min(e["loss"] for e in events("eval")) == events("eval")[-1]["loss"]'
    check p.json 'events("eval")[-1] in events("eval")[:-1]' # the best once more, with its clock and time
    expect 0 eval --model p.rbt --data test.dat --json e.json
    check e.json 'abs(last["loss"] - '"$(sed -n 's/.*"eval".*"loss":\([^,]*\).*/\1/p' p.json | tail -n 1)"') < 1e-6'
done
expect 2 train mf --data train.dat --valid test.dat --patience 3 --sync ssp
says 'where --valid is looked at when training has ended; use --sync hogwild'

# with servers: the same bits everywhere under bsp, and a model that is as good
for runtime in local sim; do
    expect 0 train mf --data train.dat --valid test.dat --sync bsp --workers 3 --rank 4 --l2 0.02 --epochs 20 --batch 25% \
        --runtime $runtime --out $runtime.rbt --json $runtime.json --quiet
    check $runtime.json 'events("eval")[-1]["rmse"] < 0.5'
done
expect 0 launch --local 3 -- train mf --data train.dat --sync bsp --workers 3 --rank 4 --l2 0.02 --epochs 20 --batch 25% \
    --out cluster.rbt --quiet
cmp local.rbt sim.rbt || fail 'local and sim differ'
cmp local.rbt cluster.rbt || fail 'local and cluster differ'
# each process reads its part, whatever the format: rows go to their workers, and the numbers of rows stay
expect 0 convert --data train.dat --out train.cache
awk -F:: '{ r[$1] = r[$1] " " $2 ":" $3 } END { for (u = 1; u <= 300; u++) print "0" r[u] }' train.dat >train.svm
for data in train.cache 'train.svm --format libsvm'; do
    # shellcheck disable=SC2086
    expect 0 train mf --data $data --sync bsp --workers 3 --rank 4 --epochs 3 --out one.rbt --json one.json --quiet
    # shellcheck disable=SC2086
    expect 0 launch --local 3 --servers 2 -- train mf --data $data --sync bsp --workers 3 --rank 4 --epochs 3 --out three.rbt --json three.json --quiet
    cmp one.rbt three.rbt || fail "$data: one process and several differ"
    cat three.json >>one.json
    check one.json 'len({str([(w["rows"], w["nonzeros"], w["samples"]) for w in l["workers"]]) for l in events("done")}) == 1'
done
# only one of them has the standard input
"$RUBATO" launch --local 3 -- train mf --data - --sync bsp --workers 3 --rank 4 --l2 0.02 --epochs 20 --batch 25% --out cluster.rbt --quiet <train.dat
cmp local.rbt cluster.rbt || fail 'ratings from the standard input are others'

for options in '--sync ssp --share both' '--sync asp' '--sync ssp --rule con' '--sync ssp --rule adagrad' \
    '--sync ssp --rule adarev --share both' '--biases off --sync bsp' '--step plain --lr 0.05 --decay sqrt:0.1 --sync bsp'; do
    # shellcheck disable=SC2086
    expect 0 train mf --data train.dat --valid test.dat --workers 3 --rank 4 --l2 0.02 --epochs 20 --batch 10% $options --json o.json --quiet
    check o.json 'events("eval")[-1]["rmse"] < 0.7' # the ratings' deviation is 1
done
# without servers: the same bits everywhere in standard mode, and a model that is as good
for sync in 'hop --graph ring-based' 'hop --order serial' allreduce; do
    for runtime in local sim; do
        # shellcheck disable=SC2086
        expect 0 train mf --data train.dat --valid test.dat --sync $sync --workers 4 --rank 4 --l2 0.02 --epochs 20 \
            --runtime $runtime --out $runtime.rbt --json $runtime.json --quiet
        check $runtime.json 'events("eval")[-1]["rmse"] < 0.4 and last["clocks"] == 200 and last["spread"] < 1'
    done
    # shellcheck disable=SC2086
    expect 0 launch --local 4 -- train mf --data train.dat --sync $sync --workers 4 --rank 4 --l2 0.02 --epochs 20 \
        --out cluster.rbt --json cluster.json --quiet
    cmp local.rbt sim.rbt || fail "$sync: local and sim differ"
    cmp local.rbt cluster.rbt || fail "$sync: local and cluster differ"
    cat sim.json >>cluster.json
    check cluster.json 'len({round(l["loss"], 9) for l in events("done")}) == 1'
    expect 0 eval --model cluster.rbt --data test.dat --json e.json
    check e.json 'last["rmse"] < 0.4'
    expect 0 predict --model cluster.rbt --user 7 --top 3
done
for options in 'adpsgd' 'hop --max-gap 5 --backup 1' 'hop --max-gap 5 --staleness 2' 'hop --max-gap 8 --backup 1 --skip 5' \
    'hop --batch 100%' 'hop --graph ring --batch 50% --biases off' 'hop --step plain --lr 0.05'; do
    # shellcheck disable=SC2086
    expect 0 train mf --data train.dat --workers 4 --rank 4 --l2 0.02 --epochs 20 --runtime sim --sync $options --json o.json --quiet
    check o.json 'last["loss"] < 0.6 * events("clock")[0]["loss"]'
done
# what one peer alone has learned of its users comes through averages whole, however seldom these are
for options in 'adpsgd --cost sample=10us' 'hop --batch 100%'; do
    # shellcheck disable=SC2086
    expect 0 train mf --data train.dat --valid test.dat --workers 4 --rank 4 --l2 0.02 --epochs 20 --runtime sim --sync $options --json o.json --quiet
    check o.json 'events("eval")[-1]["rmse"] < 0.4'
done
expect 0 train mf --data train.dat --workers 4 --rank 4 --epochs 20 --runtime sim --sync hop --target-loss 0.3 --json o.json --quiet
check o.json 'last["reached"] and last["clocks"] < 200 and last["loss"] <= 0.3'

# adarev forgives step sizes that differ by a factor of 8, wherever the users are
for share in items both; do
    for rate in 0.16 1.28; do
        expect 0 train mf --data train.dat --sync bsp --workers 3 --rank 4 --l2 0.02 --epochs 60 --rule adarev --share $share --lr $rate \
            --runtime sim --json $rate.json --quiet
    done
    check 0.16.json 'abs(last["loss"] / float("'"$(sed -n '$s/.*"done","loss":\([^,]*\).*/\1/p' 1.28.json)"'") - 1) < 0.03'
done
expect 0 train mf --data train.dat --sync bsp --workers 3 --rank 4 --target-loss 0.4 --epochs 50 --out t.rbt --json o.json --quiet
check o.json 'last["reached"] and last["clocks"] < 50'
expect 0 eval --model t.rbt --data train.dat --json e.json
check e.json 'last["rmse"] < 0.7' # what the workers had of the users is in the model, also when training ends early

# the model in use
expect 0 eval --model m.rbt --data test.dat --json e.json
check e.json 'last["rmse"] < 0.5 and last["mae"] < last["rmse"] and last["ratings"] == 900'
expect 0 predict --model m.rbt --data test.dat --out told
[ "$(wc -l <told)" -eq 900 ] || fail 'not one prediction per rating'
grep -qE '^[0-9]+	[0-9]+	[0-9.]+$' told || fail 'predictions look different'
# answers are in the order of the lines, also of those that come twice or from several files, and do not depend on it
sort -t: -k3,3n -k1,1nr test.dat >shuffled
{ cat shuffled && head -n 20 shuffled; } >mixed.dat
expect 0 predict --model m.rbt --data mixed.dat --out told-mixed
cut -f1,2 told-mixed >pairs
awk -F:: '{ print $1 "\t" $2 }' mixed.dat | cmp - pairs || fail 'the order of the lines is not kept'
sort -u told-mixed >sorted
sort -u told | cmp - sorted || fail 'other answers in another order'
expect 0 predict --model m.rbt --data '*mixed.dat' --out -
cmp told-mixed "$out" || fail 'a pattern gives other answers'
"$RUBATO" predict --model m.rbt --data - <mixed.dat | cmp - told-mixed || fail 'the standard input gives other answers'
printf 'user,item\n7,3\n7,nobody\n' >pairs.csv # a user and an item are enough
"$RUBATO" predict --model m.rbt --data - <pairs.csv >told-pairs
[ "$(cut -f1,2 told-pairs | tr '\t\n' ',;')" = '7,3;7,nobody;' ] || fail 'predictions of pairs'
expect 1 eval --model m.rbt --data pairs.csv
says 'expected a rating'
expect 1 train mf --data pairs.csv --rank 2 # but not to learn from, nor to validate with
says "pairs.csv:1: 'user,item': expected a rating"
expect 1 train mf --data train.dat --valid pairs.csv --rank 2
says "pairs.csv:1: 'user,item': expected a rating"
{ cat test.dat && echo 7::8::nothing; } >odd.dat # of what is left out of --valid is told, too
expect 0 train mf --data train.dat --valid odd.dat --skip-bad 1 --rank 2 --epochs 1
prints 'odd.dat:901: '
expect 1 launch --local 2 -- train mf --data pairs.csv --rank 2
says "pairs.csv:1: 'user,item': expected a rating"
expect 0 info m.rbt
prints '300 users and 120 items of rank 4'
expect 0 predict --model m.rbt --user 7 --top 120
sort -s -k2,2nr "$out" | cmp - "$out" || fail 'recommendations are not the best first'
expect 0 predict --model m.rbt --user 7 --top 120 --data train.dat
[ "$(($(wc -l <"$out") + $(grep -c '^7::' train.dat)))" -eq 120 ] || fail 'what is known is not left out'
cp "$out" known
awk -F:: '{ print $1 "," $2 }' train.dat >seen.csv
expect 0 predict --model m.rbt --user 7 --top 120 --data seen.csv
cmp known "$out" || fail 'what is known without ratings is not left out'
expect 0 export --model m.rbt --format json --out m.json
check m.json 'len(last["users"]) == 300 and len(last["items"][0]) == 4 and len(last["user_names"]) == 300'

# where the model has names, places in data without any say nothing
expect 0 convert --data train.svm --format libsvm --out plain.cache
for command in eval predict 'predict --user 7'; do
    for data in 'train.svm --format libsvm' plain.cache; do
        # shellcheck disable=SC2086
        expect 1 $command --model m.rbt --data $data
        says 'knows users and items by their names, and the data has none; give ratings'
    done
done
for sync in bsp hogwild; do
    expect 1 train mf --data train.dat --valid plain.cache --rank 2 --epochs 1 --sync $sync --out valid.rbt
    says '--valid plain.cache: has no names of users and items'
done
expect 0 eval --model one.rbt --data plain.cache --json e.json # trained on the same, without names
check e.json 'last["rmse"] < 1 and last["ratings"] == 8100'

# slips
expect 1 predict --model m.rbt --user nobody
says "knows no user 'nobody'"
expect 2 predict --model m.rbt --top 3 --data test.dat
says 'give --user NAME'
expect 2 train mf --data train.dat --rank 1001
says '--rank 1001 is out of range; give a whole number from 1 to 1000'
expect 2 train mf --data train.dat --sync aig
says 'mf needs hogwild, sequential, hop, adpsgd, allreduce, bsp, ssp or asp'
expect 2 train mf --data train.dat --sync psgd
says '--sync psgd is for models that learn from gradients'
expect 2 train mf --data train.dat --sync hop --workers 4 --share both
says '--share both is for servers and makes no sense for peers'
expect 2 train mf --data train.dat --sync hop --workers 4 --rule con
says '--rule is for servers'
expect 2 train mf --data train.dat --optimizer adam
says '--optimizer makes no sense for mf'
expect 1 train mf --data train.dat --step plain --lr 50 --workers 2
says 'use a smaller --lr'
expect 1 train mf --data train.dat --step plain --lr 50 --sync bsp --workers 2
says 'use a smaller --lr'
