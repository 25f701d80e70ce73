#!/bin/sh
# Comparing protocols: one table, the grid keeps the best, a diverging run is a row.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data

expect 0 compare lr --data data.svm --runtime sim --workers 5 --clocks 8 --straggler frac=0.2,slow=2 \
    --protocols bsp,asp/sum,ssp:3/sum,ssp:3/con,ssp:3/dyn --json compare.json --report compare.html
for protocol in bsp asp/sum ssp:3/sum ssp:3/con ssp:3/dyn; do
    prints "$protocol"
done
prints 'speed-up'
prints 'report written to compare.html'
check compare.json 'first["event"] == "start" and first["protocols"] == ["bsp", "asp/sum", "ssp:3/sum", "ssp:3/con", "ssp:3/dyn"]'
check compare.json 'len(events("result")) == 5 and last["event"] == "done" and len(last["table"]) == 5'
check compare.json 'all(r["updates"] == 40 and len(r["workers"]) == 5 for r in events("result"))'
check compare.json 'last["table"][0]["speed_up"] == 1 and all({"protocol", "lr", "seconds_to_target", "updates_to_target",
    "seconds_per_update", "wait_fraction", "minobj", "varobj", "loss", "speed_up"} <= set(row) for row in last["table"])'
check compare.json 'last["table"][0]["wait_fraction"] > last["table"][1]["wait_fraction"]'
[ "$(grep -c 'class="curve' compare.html)" -ge 10 ] || fail 'curves are missing in the report'
! grep -qE '<script|https?:' compare.html || fail 'the report loads something'

# the same under the simulator: the same bytes
cp compare.json first.json
expect 0 compare lr --data data.svm --runtime sim --workers 5 --clocks 8 --straggler frac=0.2,slow=2 \
    --protocols bsp,asp/sum,ssp:3/sum,ssp:3/con,ssp:3/dyn --json compare.json --quiet
[ ! -s "$out" ] || fail '--quiet prints'
cmp first.json compare.json || fail 'the same comparison gives different JSON'

# a grid keeps each protocol's best, and a diverging run is an answer
expect 0 compare lr --data data.svm --runtime sim --workers 3 --clocks 6 --protocols bsp/sum,ssp:2/dyn --grid lr=0.5,1e30 \
    --json grid.json
prints 'diverged'
check grid.json 'len(events("result")) == 4 and any(r["state"] == "diverged" for r in events("result"))'
check grid.json 'len(last["table"]) == 2 and all(row["lr"] == 0.5 for row in last["table"])'
expect 0 compare lr --data data.svm --runtime sim --workers 3 --clocks 6 --protocols bsp/sum --lr 1e30
prints 'diverged'

# targets: exit code 3 when nobody reaches it
expect 0 compare lr --data data.svm --runtime sim --workers 3 --epochs 60 --protocols bsp,ssp:2/dyn --target-loss 0.68
prints 'time to target'
expect 3 compare lr --data data.svm --runtime sim --workers 3 --clocks 2 --protocols bsp,ssp:2/dyn --target-loss 0.0001
says 'no protocol reached the target loss'
prints 'not reached'

# on threads, from a job file; options for one protocol do not disturb the others
printf 'model = lr\ndata = data.svm\nworkers = 2\nclocks = 3\nglobal-rate = 0.5\n' >job.conf
expect 0 compare --config job.conf --protocols bsp/con,ssp:1/dyn
prints 'ssp:1/dyn'

# what folds say has a column; the help has no option that is always refused
expect 0 compare lr --data data.svm --runtime sim --workers 2 --clocks 3 --protocols bsp,asp/con --lr 1 --folds 2 --report folds.html
prints 'loss of folds'
[ "$(grep -cF ' +- ' "$out")" -eq 2 ] || fail 'a run without what its folds say'
grep -qF '<th>loss of folds</th>' folds.html || fail 'no folds in the report'
expect 0 compare --help
prints '--runtime'
! grep -qE '^  --(out|sync) ' "$out" || fail 'the help has what is refused'

expect 1 compare lr --data missing.svm --protocols bsp
says 'missing.svm'

# Ctrl-C ends a comparison also when the run it comes in turns out to have reached its target; no time is told of that run
"$RUBATO" compare lr --data data.svm --workers 2 --protocols bsp,ssp:2/con --lr 1 --clocks 1e9 --eval-every 0 --target-loss 10 \
    --json stopped.json >"$out" 2>"$err" &
pid=$!
python3 -c '
import os, signal, sys
def caught():
    for line in open("/proc/" + sys.argv[1] + "/status"):
        if line.startswith("SigCgt:"):
            return int(line.split()[1], 16)
while not caught() & 1 << signal.SIGINT - 1:
    pass
os.kill(int(sys.argv[1]), signal.SIGINT)
' "$pid"
code=0
wait "$pid" || code=$?
[ "$code" -eq 130 ] || fail "an interrupted comparison: exit code $code"
says 'interrupted in run 1 of 2'
check stopped.json 'len(events("result")) == 1 and [(r["state"], r["seconds_to_target"]) for r in last["table"]] == [("interrupted", None)]'

# what a run notes is told with its number, in a log and in the JSON
{
    cat data.svm
    echo 'no row'
} >bad.svm
expect 0 compare lr --data bad.svm --skip-bad 3 --protocols bsp,ssp/con --grid lr=0.1,0.2 --clocks 2 --workers 2 --runtime sim --json notes.json
[ "$(grep -c '^\[[1-4]/4\] .* note: .*bad.svm' "$out")" -eq 4 ] || fail 'notes of the four runs are missing'
prints '[3/4] ssp/con note: '
check notes.json '[(n["protocol"], n["lr"]) for n in events("note")] == [("bsp", 0.1), ("bsp", 0.2), ("ssp/con", 0.1), ("ssp/con", 0.2)]'
check notes.json 'all("bad.svm" in n["note"] for n in events("note"))'

# one model, and no cluster; what stands in a job file is an option of a job
expect 2 compare lr --model svm --data data.svm --protocols bsp,asp
says "which model is to be trained? 'lr' and --model both say; give one"
expect 0 compare --model lr --data data.svm --protocols bsp --runtime sim --workers 2 --clocks 1
expect 2 compare lr --data data.svm --protocols bsp,ssp --runtime cluster
says 'compare runs on one machine or in the simulator; give --runtime local or --runtime sim'
expect 0 compare --help
prints 'Every option of a job may also stand in a job file'
