#!/bin/sh
# What a message advises works when it is done.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data
train()
{
    code=$1
    shift
    expect "$code" train "$@" --quiet
}

# an optimizer for one memory, and what brings servers with it
train 2 lr --data data.svm --optimizer newton --batch 10
says 'use --sync hogwild and leave out --batch, or --optimizer sgd'
train 0 lr --data data.svm --optimizer newton --sync hogwild
train 0 lr --data data.svm --optimizer sgd --batch 10
train 2 lr --data data.svm --optimizer sdca --sync ssp --staleness 2
says 'use --sync hogwild and leave out --staleness, or --optimizer sgd'
train 2 lr --data data.svm --optimizer asgd --sync ssp
says 'use --sync hogwild, or --optimizer sgd'
train 0 lr --data data.svm --optimizer asgd --sync hogwild
train 2 lr --data data.svm --optimizer newton --runtime sim
says 'which --runtime sim has not; use --optimizer sgd'
train 0 lr --data data.svm --optimizer sgd --runtime sim

# no l2: optimizers that need one, and an optimum that is far away
train 2 lr --data data.svm --optimizer sdca --l2 0
says 'give one, or use --optimizer sgd'
train 0 lr --data data.svm --optimizer sdca --l2 0.01
train 0 lr --data data.svm --optimizer sgd --l2 0
expect 0 train lr --data data.svm --optimizer sgd --l2 0 --tolerance 0.001
prints 'give more --epochs with --tolerance 0.001, or an --l2 above 0, or --normalize standard'
expect 0 train lr --data data.svm --optimizer sgd --l2 0 --epochs 2000 --tolerance 0.001 --json run.json
check run.json '"--tolerance" in last["ended"]'
expect 0 train lr --data data.svm --l2 0.001 --json run.json
check run.json '"--tolerance" in last["ended"]'

# values near the largest there are, and some that never change
awk 'BEGIN { for (i = 0; i < 60; i++)
    printf "%d 1:%se38 2:%ge-38 3:%g\n", i % 3 == 0 ? 1 : -1, i % 2 == 0 ? "3" : "-3", i + 1, i % 7 + 1 }' >large.svm
awk '{ print $1, "1:3e38", $4 }' large.svm >same.svm
for sync in '--optimizer sdca' '--sync hogwild --optimizer sgd' '--sync ssp'; do
    for model in lr svm softmax huber linear; do
        # shellcheck disable=SC2086
        train 0 $model --data large.svm --normalize standard $sync --out large.rbt
    done
    # shellcheck disable=SC2086
    train 1 softmax --data large.svm $sync
    says '--normalize standard'
    # shellcheck disable=SC2086
    train 1 softmax --data same.svm --normalize standard $sync
    says '--normalize unit'
    # shellcheck disable=SC2086
    train 0 softmax --data same.svm --normalize unit $sync
done
expect 0 predict --model large.rbt --data large.svm
! grep -qi 'nan\|inf' "$out" || fail 'the model of large values predicts none'

# models among data
train 0 lr --data data.svm --out a.rbt
train 0 lr --data data.svm --out b.rbt
expect 0 convert --data data.svm --out data.cache
gzip -k data.svm
model='is a model of Rubato, not data; give models with --model (predict, eval), or one alone (info)'
for beside in b.rbt data.svm data.cache data.svm.gz; do # in either order
    expect 1 info a.rbt $beside
    says "a.rbt: $model"
    expect 1 info $beside a.rbt
    says ".rbt: $model"
done
expect 1 train lr --data data.svm a.rbt --store disk
says "a.rbt: $model"
expect 1 train lr --data 'data.svm*' a.rbt
says "a.rbt: $model"
expect 0 info a.rbt
expect 0 info b.rbt
for command in 'convert --to csv --out -' 'train lr --quiet' 'predict --model b.rbt' 'eval --model b.rbt'; do
    # shellcheck disable=SC2086
    expect 1 $command --data data.svm a.rbt
    says "a.rbt: $model"
    # shellcheck disable=SC2086
    expect 1 $command --data a.rbt
    says "a.rbt: $model"
done
expect 1 launch --local 2 -- train lr --data data.svm a.rbt --quiet
says "a.rbt: $model"
expect 0 predict --model a.rbt --data data.svm

# and a model whose first bytes are no model's any more, by a method and by gradients
expect 0 train kmeans --data data.svm --clusters 2 --quiet --out k.rbt
for at in 4 5 6 7; do
    cp k.rbt bad.rbt
    printf 'X' | dd of=bad.rbt bs=1 seek=$at conv=notrunc 2>/dev/null
    expect 1 info bad.rbt
    says 'bad.rbt: begins as a model of Rubato does, but its first 8 bytes are damaged or cut short; copy it again'
done
head -c 6 k.rbt >bad.rbt
expect 1 info bad.rbt
says 'copy it again (not as text), or train it again'
expect 0 info k.rbt
