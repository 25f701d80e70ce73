#!/bin/sh
# No option is silently ignored: what would change nothing in this job is refused with the reason.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data
expect 0 gen regression --rows 60 --cols 20 --nnz 5 --out numbers.svm
expect 0 gen docs --rows 30 --words 40 --nnz 8 --topics 3 --out docs.txt
expect 0 gen ratings --users 20 --items 10 --rows 90 --out ratings.dat

refused() # WHAT IT SAYS, OPTIONS...
{
    sentence=$1
    shift
    expect 2 train "$@" --quiet
    says "$sentence"
}
refused '--momentum makes no sense without' lr --data data.svm --momentum 0.5
refused '--delta makes no sense for lr' lr --data data.svm --delta 2
refused 'give --skip too' lr --data data.svm --sync hop --max-gap 4 --skip-trigger 3
refused '--join-timeout is for several processes' lr --data data.svm --join-timeout 5
refused '--machines makes no sense without --graph clique' lr --data data.svm --sync hop --workers 4 --machines 2
refused '--graph clique needs --machines' lr --data data.svm --sync hop --workers 4 --graph clique
for option in '--l1 1' '--l2 1' '--lr 1' '--decay sqrt:1'; do
    # shellcheck disable=SC2086
    refused "makes no sense for kmeans" kmeans --data data.svm --clusters 3 $option
    # shellcheck disable=SC2086
    refused "makes no sense for lda" lda --data docs.txt --topics 3 $option
    # shellcheck disable=SC2086
    refused "makes no sense for sketch" sketch --data docs.txt $option
done
refused '--l1 makes no sense for mf' mf --data ratings.dat --l1 0.1
refused '--lr makes no sense for lasso' lasso --data numbers.svm --l1 0.1 --lr 1
refused '--batch makes no sense for lasso' lasso --data numbers.svm --l1 0.1 --batch 10
refused '--batches-per-clock makes no sense for l1lr' l1lr --data data.svm --l1 0.1 --batches-per-clock 3
refused '--epochs makes no sense for sketch' sketch --data docs.txt --epochs 3
refused '--clocks makes no sense for sketch' sketch --data docs.txt --clocks 3
refused '--valid makes no sense for sketch' sketch --data docs.txt --valid docs.txt

# what they do mean something to
expect 0 train lr --data data.svm --optimizer momentum --momentum 0.5 --epochs 1 --quiet
expect 0 train lr --data data.svm --sync ssp --rule momentum --momentum 0.5 --lr 1 --epochs 1 --quiet
expect 0 train huber --data numbers.svm --delta 2 --epochs 1 --quiet
expect 0 train lr --data data.svm --sync hop --graph clique --machines 2 --workers 4 --epochs 1 --quiet
expect 0 train mf --data ratings.dat --l2 0.1 --lr 0.2 --decay sqrt:1 --epochs 1 --quiet
expect 0 train l1lr --data data.svm --l1 0.01 --lr 1 --epochs 2 --quiet
expect 0 train sketch --data docs.txt --epochs 1 --quiet
expect 0 compare lr --data data.svm --runtime sim --workers 2 --protocols bsp/momentum,ssp,hop --momentum 0.5 --lr 1 --epochs 1

# a cluster's own: nobody trains on something else than what was asked for
expect 2 launch --local 2 -- train lr --data data.svm --runtime sim
says '--runtime sim makes no sense with rubato launch'
expect 2 launch --local 2 --hosts a -- train lr --data data.svm
says '--local and --hosts both say where'
expect 2 launch --local 2 -- trian lr --data data.svm
says "'trian' cannot be launched"
expect 2 launch --local 2 train lr --data data.svm
says 'the job stands behind --'

# what the job does is told: its own settings, what is sent, the graph that was chosen
expect 0 train lasso --data numbers.svm --l1 0.1 --epochs 2
prints 'l1=0.1'
prints 'length     2 epochs'
expect 0 train lr --data data.svm --sync ssp --rule sum --budget 1Mbit --priority random --codec lz4 --lr 1 --epochs 1
prints 'sending    budget 1Mbit, priority random, codec lz4'
expect 0 train lr --data data.svm --sync hop --workers 4 --epochs 1 --quiet --json hop.json
check hop.json 'first["graph"] == "ring-based" and "priority" not in first'
expect 0 train lr --data data.svm --epochs 1 --quiet --report page.html
grep -q 'hogwild &middot; [0-9]* worker[s]*, no servers' page.html || fail 'the page of a job without servers has a wrong heading'
