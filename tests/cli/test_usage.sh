#!/bin/sh
# Help, version, and everything that is wrong usage: exit code 2 and a sentence that says what to do.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 --version
prints 'rubato 0.1.0'
expect 0 --help
for command in train compare sim predict eval export import gen convert info swarm key bench; do
    prints "  $command"
    expect 0 "$command" --help
    prints "rubato $command"
    expect 0 --help
done
if [ -c /dev/full ]; then
    for help in --help --version 'train --help' 'key --help'; do
        # shellcheck disable=SC2086
        ! "$RUBATO" $help >/dev/full 2>"$err" || fail "$help that cannot be written is taken for done"
        says 'cannot write to the standard output'
    done
fi
expect 0 train --help
prints '--staleness'
prints 'Only with --runtime sim'

expect 2
expect 2 trian
says "unknown command 'trian'; did you mean 'train'?"

small_data
expect 2 train lr --data data.svm --stalness 3
says "rubato train: unknown option '--stalness'; did you mean '--staleness'?"
expect 2 train lr --data data.svm --confg job
says "did you mean '--config'?"
expect 2 train lr --data data.svm --workers
says "--workers needs a value"
expect 2 train lr --data data.svm --workers --quiet
says '--workers needs a value, and --quiet is an option'
expect 2 train lr --data --store disk
says '--data needs a value (a file of that name: ./--store)'
expect 2 train lr --data data.svm --out --json
says '--out needs a value (a file of that name: ./--json)'
expect 2 gen lr --rows 5 --out --seed
says 'rubato gen: --out needs a value (a file of that name: ./--seed)'
[ ! -e ./--seed ] || fail 'an option became the name of a file'
expect 0 gen lr --rows 5 --out=--seed --seed 2
[ -s ./--seed ] || fail 'a name after = is taken as it is'
rm ./--seed
expect 0 gen lr --rows 5 --out -
expect 2 train lr --data data.svm --quiet=yes
says "--quiet takes no value"
expect 2 train lr --data data.svm --seed 1 --seed 2
says "--seed is given twice"
expect 2 train lr --data data.svm --model svm
says "which model is to be trained? 'lr' and --model both say; give one"
expect 2 train lr extra --data data.svm
says "unexpected 'extra'; --help shows what the command takes"
expect 2 train lr data.svm
says "unexpected 'data.svm'; data is given with --data"
expect 2 predict --model m data.svm
says "unexpected 'data.svm'; data is given with --data"
expect 2 eval --model m --data data.svm --metric x extra
says "unexpected 'extra'"
expect 2 train lr --data data.svm -w 3
says "unknown option '-w'"
expect 2 train
says 'which model?'
expect 1 train lr --data missing.svm
! grep -q 'rubato train' "$out" || fail 'a header of a job that does not begin'
expect 2 train rl --data data.svm
says "unknown model 'rl'"
expect 2 train lr
says 'give --data PATH'

# `sim` is the same line with --runtime sim
expect 0 sim train lr --data data.svm --workers 2 --lr 1 --clocks 2 --quiet --json sim.json
check sim.json 'first["runtime"] == "sim" and last["events"] > 0'
expect 0 sim compare --data data.svm --model lr --protocols bsp,asp --workers 2 --lr 1 --clocks 2
prints 'asp'
expect 0 sim train --help
prints 'rubato sim train MODEL'
for line in '' predict; do
    # shellcheck disable=SC2086
    expect 2 sim $line
    says 'rubato sim: what is to be simulated? write'
done
for runtime in '--runtime local' --runtime=sim; do
    # shellcheck disable=SC2086
    expect 2 sim train lr --data data.svm $runtime
    says 'rubato sim train: --runtime makes no sense with rubato sim, which is the simulator; leave it out, or leave out sim'
done
expect 0 sim train --runtime local --help
expect 2 sim train lr --data data.svm --workers
says '--workers needs a value'

# combinations without sense
expect 2 train lr --data data.svm --sync bsp --staleness 3
says '--staleness makes no sense with --sync bsp'
expect 2 train lr --data data.svm --sync asp --staleness=3
says '--staleness makes no sense with --sync asp'
expect 2 train lr --data data.svm --rule sum --global-rate 0.5
says 'use --rule con'
expect 2 train lr --data data.svm --rule sum --partition-sync on
says 'use --rule dyn'
expect 2 train lr --data data.svm --sync bsp --eager on
says 'use --sync ssp'
expect 2 train lr --data data.svm --net lat=1ms
says 'use --runtime sim'
expect 2 train lr --data data.svm --clocks 5 --epochs 5
says 'give one of them'

# values out of range
expect 2 train lr --data data.svm --workers 0
says '--workers 0 is out of range'
expect 2 train lr --data data.svm --workers 100001
says 'from 1 to 100000'
expect 2 train lr --data data.svm --workers 2x
says 'not a whole number'
expect 2 train -- lr --data data.svm
says "'--' says nothing here; leave it out"
expect 2 train lr --data data.svm --servers 0
says '--servers 0'
expect 2 train lr --data data.svm --lr 0
says 'greater than 0'
expect 2 train lr --data data.svm --lr -1
says '--lr'
expect 2 train lr --data data.svm --l2 -1
says 'at least 0'
expect 2 train lr --data data.svm --batch 0
says '--batch 0'
expect 2 train lr --data data.svm --batch 101%
says 'at most 100%'
expect 2 train lr --data data.svm --decay mult:2
says 'at most 1'
expect 2 train lr --data data.svm --sync psb
says 'bsp|ssp|asp'

# the other commands
expect 2 compare lr --data data.svm
says '--protocols is missing'
expect 2 compare lr --data data.svm --protocols bsp,ssp:x/dyn
says "protocol 'ssp:x/dyn'"
expect 2 compare lr --data data.svm --protocols bsp:3
says 'only ssp takes a staleness'
expect 2 compare lr --data data.svm --protocols bsp --grid 0.1,1
says 'lr=0.01,0.1,1'
expect 2 compare lr --data data.svm --protocols bsp --grid lr=0.1,zero
says '--lr'
expect 2 compare lr --data data.svm --protocols bsp --out m.rbt
says '--out makes no sense'

# what is written has a name, and a place
expect 0 train lr --data data.svm --epochs 2 --quiet --out place.rbt
while read -r command; do
    # shellcheck disable=SC2086
    expect 2 $command --out ''
    says '--out needs a value'
    # shellcheck disable=SC2086
    expect 1 $command --out missing/file
    says 'missing/file: cannot be created: No such file or directory; choose a place that can be written'
done <<'COMMANDS'
gen lr --rows 5
convert --data data.svm
train lr --data data.svm
predict --model place.rbt --data data.svm
export --model place.rbt --format text
COMMANDS
if [ -c /dev/full ]; then
    ! "$RUBATO" gen lr --rows 5 --out - >/dev/full 2>"$err" || fail 'data that cannot be written is taken for done'
    says 'standard output: cannot be written: No space left on device; make room or choose another place'
    ! grep -q 'left behind' "$err" || fail 'nothing could be left behind on the standard output'
fi

expect 2 predict --data data.svm
says '--model is missing'
expect 2 predict --model m --data data.svm --as words
says 'label, probability or score'
expect 2 eval --model m
says '--data is missing'
expect 2 gen
says 'which kind of data? there are lr, '
expect 2 gen rl --out x
says "unknown kind 'rl'; there are lr, "
expect 2 gen lr
says '--out is missing'
expect 2 gen lr --out x --rows 0
says '--rows 0'
expect 2 convert --data data.svm
says '--out is missing'
expect 2 convert --data data.svm --out x --to svm
says "--to 'svm' is unknown; choose libsvm, csv, vw, cache, ratings or docword"
expect 2 info
says 'which file?'
expect 2 swarm
says '--seeds is missing'
expect 2 swarm --seeds 0
says '--seeds 0'
expect 2 swarm --seeds 5 --replay 3
says '--replay runs one seed'
expect 2 bench
says 'kernels'

# Standard streams that are closed: a file that took their number would get what is printed.
"$RUBATO" train lr --data data.svm --epochs 2 --json closed.json --out closed.rbt <&- >&- 2>&- || fail 'train with closed streams'
check closed.json 'last["event"] == "done"'
"$RUBATO" launch --local 2 -- train lr --data data.svm --epochs 2 --out closed2.rbt <&- >&- 2>&- || fail 'launch with closed streams'
[ -s closed2.rbt ] || fail 'no model from launch with closed streams'

# what launch and the job behind -- both say is said once, or the same; a job file has not the last word
expect 2 launch --local 2 --servers 2 -- train lr --data data.svm --servers 3
says 'rubato launch: --servers 2 of launch and --servers 3 of the job; give it once'
expect 2 launch --local 2 --colocate on -- train lr --data data.svm --colocate=off
says '--colocate on of launch and --colocate off of the job; give it once'
expect 2 launch --local 2 --key one.key -- train lr --data data.svm --key two.key
says '--key one.key of launch and --key two.key of the job; give it once'
expect 2 launch --local 2 --join-timeout 30 -- train lr --data data.svm --join-timeout 60
says '--join-timeout 30 of launch and --join-timeout 60 of the job; give it once'
printf 'servers = 3\n' >servers.txt
expect 0 launch --local 1 --servers 1 -- train lr --data data.svm --servers 1 --clocks 1
expect 0 launch --local 1 --servers 1 -- train lr --data data.svm --config servers.txt --clocks 1
prints '1 server'

# options that would change nothing
for option in '--rsh ssh' '--rubato /bin/rubato' '--advertise 10.0.0.1' --insecure; do
    # shellcheck disable=SC2086
    expect 2 launch --local 2 $option -- train lr --data data.svm
    says "${option%% *} makes no sense with --local, where all processes are on this host; leave it out, or give --hosts"
done
expect 0 launch --local 1 --listen 127.0.0.1:0 --insecure -- train lr --data data.svm --clocks 1
expect 2 bench kernels --only tcp
says '--only makes no sense with bench kernels; it is of bench net: leave it out'
