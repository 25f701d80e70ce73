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
for option in '--l1 1' '--l2 1' '--lr 1' '--decay sqrt:1'; do
    # shellcheck disable=SC2086
    refused "makes no sense for kmeans" kmeans --data data.svm --clusters 3 $option
    # shellcheck disable=SC2086
    refused "makes no sense for lda" lda --data docs.txt --topics 3 $option
    # shellcheck disable=SC2086
    refused "makes no sense for sketch" sketch --data docs.txt $option
done
refused '--l1 makes no sense for mf' mf --data ratings.dat --l1 0.1
refused '--no-bias makes no sense for mf; use --biases off' mf --data ratings.dat --no-bias
refused '--lr makes no sense for lasso' lasso --data numbers.svm --l1 0.1 --lr 1
refused '--batch makes no sense for lasso' lasso --data numbers.svm --l1 0.1 --batch 10
refused '--batches-per-clock makes no sense for l1lr' l1lr --data data.svm --l1 0.1 --batches-per-clock 3
refused '--epochs makes no sense for sketch' sketch --data docs.txt --epochs 3
refused '--clocks makes no sense for sketch' sketch --data docs.txt --clocks 3
refused '--valid makes no sense for sketch' sketch --data docs.txt --valid docs.txt
refused '--decay makes no sense for l1lr without --lr' l1lr --data data.svm --l1 0.1 --decay mult:0.1
refused '--budget makes no sense for l1lr, whose servers make a step of what a clock sends as a whole' \
    l1lr --data data.svm --l1 0.1 --sync ssp --budget 100Mbit
refused '--filter kkt=0.5 and --kkt 0.7 are one option' l1lr --data data.svm --l1 0.1 --filter kkt=0.5 --kkt 0.7
refused '--filter kkt=0.5 and --kkt 0.7 are one option' l1lr --data data.svm --l1 0.1 --kkt 0.7 --filter kkt=0.5
refused '--filter significant=0.5 and --significant 0.25 are one option' \
    l1lr --data data.svm --l1 0.1 --filter significant=0.5 --significant 0.25
expect 0 train l1lr --data data.svm --l1 0.1 --kkt 0.5 --filter kkt=0.5 --lr 0.5 --decay sqrt:1 --epochs 1 --quiet
for sync in hogwild sequential; do
    refused '--share both is for servers and makes no sense in one memory' mf --data ratings.dat --sync $sync --share both
    refused '--pieces is for servers and makes no sense in one memory' mf --data ratings.dat --sync $sync --pieces 7
done

# what has no steps has no decay of them, and nobody's steps to keep apart
for optimizer in newton sdca; do
    for decay in none sqrt:1; do
        refused "--decay makes no sense with --optimizer $optimizer" lr --data data.svm --optimizer $optimizer --decay $decay
    done
done
expect 0 train lr --data data.svm --decay none --epochs 1
prints 'learning   sgd, step size'
for sync in aig round-robin; do
    refused "--sync $sync makes no sense with --optimizer newton" lr --data data.svm --sync $sync --optimizer newton
    expect 0 train lr --data data.svm --sync $sync --epochs 3
    prints "protocol   $sync"
    prints 'learning   sdca'
done

# eager pushes are of servers, and those of ssp; asked for, there are some
refused '--eager makes no sense with --sync hogwild' lr --data data.svm --sync hogwild --eager on
expect 0 train lr --data data.svm --eager on --epochs 1
prints 'ssp with staleness 3, rule dyn, eager pushes'
expect 0 train lr --data data.svm --runtime sim --eager off --epochs 1 --json eager.json --quiet
check eager.json 'first["eager"] == "off"'

# half a pass is one where clocks are shorter
whole='makes no sense where a clock is a pass over the data; give a whole number'
refused "--epochs 2.5 $whole" lr --data data.svm --epochs 2.5
refused "--epochs 0.5 $whole" mf --data ratings.dat --epochs 0.5
refused "--epochs 2.5 $whole, or make clocks shorter, as with --batches-per-clock 1" \
    lr --data data.svm --sync ssp --batch 10% --epochs 2.5
refused "--epochs 2.5 $whole, or make clocks shorter, as with --batch 10%" kmeans --data data.svm --clusters 3 --epochs 2.5
refused "--epochs 2.5 $whole" lasso --data numbers.svm --l1 0.1 --epochs 2.5
expect 0 train lr --data data.svm --sync ssp --workers 2 --batch 10% --batches-per-clock 1 --epochs 2.5 --json half.json --quiet
check half.json 'last["clocks"] == 25'
expect 0 train lr --data data.svm --sync hop --workers 2 --batch 10% --epochs 2.5 --json half.json --quiet
check half.json 'last["clocks"] == 25'
expect 0 train kmeans --data data.svm --clusters 3 --batch 10% --epochs 1.5 --quiet

# names are hashed where there are names
expect 0 gen images --rows 20 --out x
expect 0 convert --data data.svm --to vw --out data.vw
refused '--bits makes no sense for data.svm, which is LIBSVM text' lr --data data.svm --bits 10
refused '--bits makes no sense for data.svm, which is LIBSVM text' lr --data data.vw --valid data.svm --bits 10 --epochs 1
refused '--bits makes no sense for x-images-idx3-ubyte, which is IDX images' softmax --data x-images-idx3-ubyte --bits 10
refused '--bits makes no sense for docs.txt, which is documents' lda --data docs.txt --topics 3 --bits 10
refused '--bits makes no sense for ratings.dat, which is ratings' mf --data ratings.dat --bits 10
for option in '--bits 10' '--format csv' '--label 2' '--weight 2' '--cache auto'; do
    # shellcheck disable=SC2086
    refused "${option% *} makes no sense for sketch" sketch --data docs.txt $option
done
expect 2 info data.svm --bits 10
says '--bits makes no sense for data.svm'
expect 2 launch --local 2 -- train lr --data data.svm --bits 10
says '--bits makes no sense for data.svm'
expect 0 train lr --data data.svm --epochs 1 --quiet --out lr.rbt
expect 2 predict --model lr.rbt --data data.svm --bits 10
says '--bits makes no sense for data.svm'
expect 0 train lr --data data.vw --bits 10 --epochs 1 --quiet

# bad rows are of text; a cache may stand beside it
expect 0 convert --data data.svm --out data.cache
refused '--skip-bad makes no sense for data.cache, which is a cache' lr --data data.cache --skip-bad 3
refused '--skip-bad makes no sense for data.cache, which is a cache' lr --data data.cache --store disk --skip-bad 3
refused '--skip-bad makes no sense for x-images-idx3-ubyte, which is a file of images' softmax --data x-images-idx3-ubyte --skip-bad 3
expect 2 predict --model lr.rbt --data data.cache --skip-bad 3
says '--skip-bad makes no sense for data.cache'
{
    cat data.svm
    echo bad
} >bad.svm
expect 0 train lr --data data.cache --valid bad.svm --skip-bad 3 --epochs 1 --quiet

# how text is read is settled when a cache is made of it; asking for the same, or for the text beside it, is fine
printf 'y,a,b\n1,2,0\n0,3,1\n1,2,1\n0,4,0\n' >columns.csv
expect 0 convert --data columns.csv --out columns.cache
expect 0 convert --data data.vw --bits 10 --out hashed.cache
for option in '--label b' '--label 3' '--label none' '--weight a' '--base 1' '--bits 10'; do
    for where in '' '--store disk' '--cache auto'; do
        # shellcheck disable=SC2086 # options and their values
        refused "$option makes no sense for columns.cache, which is a cache and stays as it was read" \
            lr --data columns.cache $where $option
    done
    # shellcheck disable=SC2086
    expect 2 launch --local 2 -- train lr --data columns.cache $option
    says "$option makes no sense for columns.cache"
done
refused '--label b makes no sense for columns.cache' lr --data columns.cache columns.cache --label b
refused '--base 0 makes no sense for data.cache' lr --data data.cache --base 0
refused '--bits 12 makes no sense for hashed.cache' lr --data hashed.cache --bits 12
for command in 'predict --model lr.rbt --data' 'eval --model lr.rbt --data' info; do
    # shellcheck disable=SC2086
    expect 2 $command data.cache --base 0
    says '--base 0 makes no sense for data.cache'
done
expect 0 train lr --data columns.cache --label y --epochs 1 --quiet
expect 0 train lr --data columns.cache --label 1 --valid columns.csv --epochs 1 --quiet
expect 0 train lr --data data.cache --base 1 --epochs 1 --quiet
expect 0 train lr --data hashed.cache --bits 10 --epochs 1 --quiet
expect 0 train lr --data data.vw --valid hashed.cache hashed.cache --bits 10 --epochs 1 --quiet
expect 0 launch --local 2 -- train lr --data columns.cache --valid columns.csv --label 1 --epochs 1 --quiet

refused '--patience counts evaluations' lr --data data.svm --valid data.svm --patience 3 --eval-every 0
for ending in '' '--tolerance 0.01 --epochs 9' '--target-loss 0.5' '--sync bsp --target-loss 0.5'; do
    # shellcheck disable=SC2086 # options
    refused '--eval-every 0 leaves the last look only' lr --data data.svm --eval-every 0 $ending
done
expect 0 train lr --data data.svm --eval-every 0 --epochs 2 --quiet
refused "--class-weight gives label '1' two weights" lr --data data.svm --class-weight 1=2,1=3
refused '- is given twice' lr --data - -
expect 2 info data.svm --vocab data.svm
says '--vocab makes no sense for data.svm, which is data'
refused 'which is LIBSVM text, whose rows have no weights' lr --data data.svm --weight 3

# what they do mean something to
expect 0 train lr --data data.svm --optimizer momentum --momentum 0.5 --epochs 1 --quiet
expect 0 train lr --data data.svm --sync ssp --rule momentum --momentum 0.5 --lr 1 --epochs 1 --quiet
expect 0 train huber --data numbers.svm --delta 2 --epochs 1 --quiet
expect 0 train lr --data data.svm --sync hop --graph clique --machines 2 --workers 4 --epochs 1 --quiet
expect 0 train mf --data ratings.dat --l2 0.1 --lr 0.2 --decay sqrt:1 --epochs 1 --quiet
expect 0 train l1lr --data data.svm --l1 0.01 --lr 1 --epochs 2 --quiet
expect 0 train sketch --data docs.txt --epochs 1 --quiet
# ... and of a comparison what makes no sense under one of its protocols is left to the others
expect 0 compare lr --data data.svm --workers 2 --protocols ssp:3,hogwild --batches-per-clock 1 --batch 10% --epochs 2.5
expect 0 compare lr --data data.svm --protocols hogwild,aig --optimizer newton --epochs 3
expect 0 train lr --data data.svm --sync aig --epochs 3
prints 'runtime    local, '"$(nproc)"' worker'
expect 0 compare lr --data data.svm --runtime sim --workers 2 --protocols bsp/momentum,ssp,hop --momentum 0.5 --lr 1 --epochs 1
# ... but what none of them takes, or each says itself, is refused
for option in '--staleness 7' '--graph ring' '--max-gap 3' '--backup 1' --notify-ack '--order serial' '--partition-sync on' \
    '--momentum 0.5'; do
    # shellcheck disable=SC2086
    expect 2 compare lr --data data.svm --protocols bsp,ssp:2/con --runtime sim --clocks 2 --lr 1 $option
    says "${option%% *} makes no sense here: each of the --protocols says it itself, or does not take it"
done
for option in '--servers 3' '--eager off' '--batch 10' '--rule con'; do
    # shellcheck disable=SC2086
    expect 2 compare lr --data data.svm --protocols hogwild,sequential --epochs 1 $option
    says "${option%% *} makes no sense here"
done
expect 2 compare lr --data data.svm --protocols bsp,asp --sync asp
says '--sync makes no sense here: --protocols says it'
expect 2 compare lr --data data.svm --protocols bsp,asp --lr 1 --grid lr=1
says '--lr and --grid both say the step size'

# a cluster's own: nobody trains on something else than what was asked for
expect 2 launch --local 2 -- train lr --data data.svm --runtime sim
says '--runtime sim makes no sense with rubato launch'
expect 2 launch --local 2 -- train lr --data data.svm --runtime local
says '--runtime local makes no sense with rubato launch'
echo 'runtime = local' >here.conf
expect 2 launch --local 2 -- train lr --data data.svm --config here.conf
says '--runtime local makes no sense with rubato launch'
expect 2 launch --local 2 --hosts a -- train lr --data data.svm
says '--local and --hosts both say where'
expect 2 launch --local 2 -- trian lr --data data.svm
says "'trian' cannot be launched"
expect 2 launch --local 2 train lr --data data.svm
says 'the job stands behind --'

# a name that nobody knows is no question of addresses
expect 1 launch --hosts no-such-host.invalid -- train lr --data data.svm
says "rubato launch: the host 'no-such-host.invalid' cannot be looked up"
! grep -q advertise "$err" || fail 'an address of this host does not help'

# an option that brings servers with it is told, unless it speaks of them
for option in --verify --encode '--batch 10' '--eager on' '--codec lz4'; do
    # shellcheck disable=SC2086
    expect 0 train lr --data data.svm --epochs 1 $option
    prints "note: ${option%% *} is for jobs with servers: --sync is ssp, and not hogwild as it would be without"
done
expect 0 train mf --data ratings.dat --epochs 1 --verify
prints 'note: --verify is for jobs with servers'
for option in '--sync ssp' '--servers 1' '--rule con' '--staleness 2' '--runtime sim'; do
    # shellcheck disable=SC2086
    expect 0 train lr --data data.svm --epochs 1 --verify $option
    ! grep -q 'is for jobs with servers' "$out" || fail "--verify $option: servers were asked for"
done

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
