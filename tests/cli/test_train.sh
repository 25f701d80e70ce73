#!/bin/sh
# Training: the summary, the JSON stream, both runtimes, targets, job files, interruption.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data

expect 0 train lr --data data.svm --valid data.svm --workers 3 --sync ssp --staleness 2 --rule dyn --clocks 6 --out model.rbt \
    --json run.json --report run.html --straggler frac=0.34,slow=2
prints 'lr on data.svm, validated on data.svm'
prints '3 workers, 1 server'
prints 'ssp with staleness 2, rule dyn'
prints 'clock '
prints 'done:'
prints ' is the penalty (mean of the last '
prints 'updates    '
prints ', one per '
prints 'stragglers'
prints 'mean of 3'
prints 'model written to model.rbt'
[ -s model.rbt ] || fail 'no model file'
grep -q '</html>' run.html || fail 'the report is not whole'
grep -q '<title>objective (with penalty): [0-9.e-]* after [0-9.]* [mu]*s</title>' run.html || fail 'the report does not name the objective and its time'
! grep -qE '<script|https?:' run.html || fail 'the report loads something'

check run.json 'first["event"] == "start" and first["workers"] == 3 and first["sync"] == "ssp" and first["staleness"] == 2'
check run.json 'first["model"] == "lr" and first["rule"] == "dyn" and first["version"] == "0.1.0"'
check run.json 'last["event"] == "done" and len(events("done")) == 1'
check run.json 'len(events("clock")) >= 1 and len(events("eval")) >= 1'
check run.json '{"loss", "seconds", "load_seconds", "clocks", "updates", "seconds_per_update", "bytes_sent", "wait_fraction",
    "max_gap", "staleness_histogram", "peak_versions", "version_bytes", "samples_per_second", "minobj", "varobj", "reached",
    "param_hash", "seed", "workers", "threads", "servers"} <= set(last)'
check run.json 're.fullmatch("[0-9a-f]{16}", last["param_hash"])'
check run.json 'last["updates"] == 18 and last["clocks"] == 6 and last["max_gap"] <= 2 and last["reached"] is None'
check run.json 'len(last["workers"]) == 3 and sum(w["rows"] for w in last["workers"]) == 400'
check run.json 'all({"compute", "wait", "communication", "rows", "clocks"} <= set(w) for w in last["workers"])'
check run.json 'not last["staleness_histogram"] or last["staleness_histogram"][-1] > 0'
check run.json 'all(c["clock_min"] <= c["clock_max"] and {"seconds", "loss", "samples_per_second", "wait_fraction",
    "staleness_mean", "bytes_sent"} <= set(c) for c in events("clock"))'
check run.json '0 < last["loss"] < 0.7 and all(0 <= e["accuracy"] <= 1 for e in events("eval"))'

# JSON on the standard output leaves it to JSON alone
expect 0 train lr --data data.svm --workers 2 --clocks 2 --json -
cp "$out" piped.json
check piped.json 'last["event"] == "done"'

# the simulator: the same bytes for the same seed, whatever the file is called
for name in a b; do
    expect 0 train lr --data data.svm --runtime sim --workers 5 --servers 2 --clocks 5 --seed 9 --straggler p=0.2,slow=4 \
        --json $name.json --out $name.rbt
    prints 'virtual'
done
cmp a.json b.json || fail 'the same seed gives different JSON'
cmp a.rbt b.rbt || fail 'the same seed gives different models'

# BSP: the same parameters on both runtimes
expect 0 train lr --data data.svm --runtime local --sync bsp --workers 4 --clocks 5 --json local.json --quiet
expect 0 train lr --data data.svm --runtime sim --sync bsp --workers 4 --clocks 5 --json sim.json --quiet
hash_of()
{
    python3 -c 'import json, sys; print(json.loads(open(sys.argv[1]).readlines()[-1])["param_hash"])' "$1"
}
[ "$(hash_of local.json)" = "$(hash_of sim.json)" ] || fail 'BSP differs between local and sim'

# targets
expect 0 train lr --data data.svm --workers 2 --epochs 50 --target-loss 0.68 --json target.json
prints 'reached after'
check target.json 'last["reached"] is True and last["loss"] <= 0.68'
expect 3 train lr --data data.svm --workers 2 --clocks 2 --target-loss 0.0001 --json target.json --out missed.rbt
prints 'not reached'
check target.json 'last["reached"] is False'
[ -s missed.rbt ] || fail 'a missed target loses the model'

# a job file, overruled by the command line
cat >job.conf <<'CONF'
# a job
model = lr
data = data.svm
workers = 2    # a pair
clocks = 3
sync = bsp
quiet = false
CONF
expect 0 train --config job.conf --workers 3 --json conf.json
check conf.json 'first["workers"] == 3 and first["sync"] == "bsp" and last["clocks"] == 3'

# features that only the validation data has
printf '1 1:1 2:3\n-1 1:1\n' >narrow.svm
printf '1 1:1 7:1\n-1 2:1\n' >wide.svm
expect 0 train lr --data narrow.svm --valid wide.svm
prints 'note: --valid has 7 features, --data 2; the others are not looked at'
expect 0 train lr --data wide.svm --valid narrow.svm
! grep -q 'not looked at' "$out" || fail 'data with fewer features is complained about'

# Ctrl-C while data is read, here from a pipe that says nothing: the end, at once
mkfifo silent
early() # TEXT OPTIONS...
{
    text=$1
    shift
    "$RUBATO" train lr --data silent --out never.rbt "$@" >"$out" 2>"$err" &
    pid=$!
    python3 -c '
import os, signal, sys
with open(sys.argv[1], "w"):  # open: the reader is there
    os.kill(int(sys.argv[2]), signal.SIGINT)
    try:
        while open("/proc/" + sys.argv[2] + "/stat").read().split()[2] != "Z":
            pass
    except OSError:  # it has gone, and the shell knows
        pass
' silent "$pid"
    code=0
    wait "$pid" || code=$?
    [ "$code" -eq 130 ] || fail "interrupted while reading: exit code $code"
    says "$text"
}
early 'interrupted before training began'
early 'interrupted before the first fold was over; there is no result' --folds 2
[ ! -e never.rbt ] || fail 'a job that never began has a model'

# Ctrl-C: ends cleanly, with the summary so far and exit code 130. The signal is sent once the event is in the log: to the main
# thread and to the process, which is told twice then, as by `timeout -s INT`. That is one wish.
mkfifo pipe
interrupt() # CODE, EVENT, OPTIONS...
{
    wanted=$1
    event=$2
    shift 2
    "$RUBATO" train lr --data data.svm --workers 2 --clocks 1e9 --json pipe --out stopped.rbt "$@" >"$out" 2>"$err" &
    pid=$!
    python3 -c '
import ctypes, os, signal, sys
pid = int(sys.argv[2])
for line in open(sys.argv[1]):
    if "\"" + sys.argv[3] + "\"" in line and pid:
        os.kill(pid, signal.SIGSTOP) # so that both come at once
        ctypes.CDLL(None).tgkill(pid, pid, signal.SIGINT)
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGCONT)
        pid = 0
open("stopped.json", "w").write(line)
' pipe "$pid" "$event"
    code=0
    wait "$pid" || code=$?
    [ "$code" -eq "$wanted" ] || fail "interrupted: exit code $code"
}
# the last look may find that the job has come to its end: it is done then, and not interrupted
interrupt 0 start --eval-every 0 --target-loss 10
prints 'done:'
prints 'because the target was reached'
check stopped.json 'last["reached"] and not last["interrupted"]'
rm stopped.rbt
interrupt 130 clock --straggler frac=1,slow=50
prints 'interrupted; so far:'
[ -s stopped.rbt ] || fail 'an interrupted job loses its model'

# between the folds: they are told apart from what comes before. The pipe holds less than the notes of all folds.
code=0
python3 -c '
import fcntl, os, select, signal, subprocess, sys
both = os.open("pipe", os.O_RDWR)
fcntl.fcntl(both, fcntl.F_SETPIPE_SZ, 4096)  # before anything is in it
with open(sys.argv[1], "w") as out, open(sys.argv[2], "w") as err:
    job = subprocess.Popen(sys.argv[3:], stdout=out, stderr=err)
notes = os.open("pipe", os.O_RDONLY)
seen = b""
while b"fold 1 of 400" not in seen:
    if not select.select([notes], [], [], 300)[0]:
        sys.exit("no fold began")
    seen += os.read(notes, 256)
os.close(both)  # now the job has it open
job.send_signal(signal.SIGINT)
while os.read(notes, 65536):
    pass
sys.exit(job.wait())
' "$out" "$err" "$RUBATO" train lr --data data.svm --workers 1 --epochs 1 --folds 400 --json pipe --out never.rbt || code=$?
[ "$code" -eq 130 ] || fail "interrupted between folds: exit code $code"
says 'of 400; there is no result'
[ ! -e never.rbt ] || fail 'a job without a result has a model'

# Ctrl-C while the model is written, here to a pipe that holds less than the model: it is written to its end; a second one ends at once
printf '1 1:1 100000:1\n-1 2:1\n' >many.svm
mkfifo model
late() # SIGNAL...: sent when the writing has begun
{
    "$RUBATO" train lr --data many.svm --epochs 1 --out model >"$out" 2>"$err" &
    pid=$!
    python3 -c '
import os, signal, sys
with open("model", "rb") as model, open("late.rbt", "wb") as copy:  # open: the writer is there
    for name in sys.argv[2:]:
        os.kill(int(sys.argv[1]), getattr(signal, name))
    copy.write(model.read())
' "$pid" "$@"
    code=0
    wait "$pid" || code=$?
    [ "$code" -eq 130 ] || fail "interrupted while the model is written: exit code $code"
}
late SIGINT
says 'interrupted when the job was over; all that it was to write is there'
prints 'model written to model'
[ "$(wc -c <late.rbt)" -gt 65536 ] || fail 'the model would fit into a pipe'
expect 0 info late.rbt
late SIGINT SIGTERM
says 'told to end a second time'
expect 1 info late.rbt

# what is drawn over itself in a terminal stays within its row, however narrow that is
python3 - "$RUBATO" <<'PYTHON' || fail 'a line goes on in the next row of the terminal'
import fcntl, os, pty, re, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    os.execv(sys.argv[1], ["rubato", "train", "lr", "--data", "data.svm", "--sync", "ssp", "--workers", "2", "--clocks", "5"])
text = b""
try:
    while more := os.read(terminal, 65536):
        text += more
except OSError:  # the other end has gone
    pass
drawn = re.findall(rb"\r([^\r\n\x1b]*)\x1b\[K", text)
sys.exit(os.waitpid(pid, 0)[1] or not any(drawn) or max(map(len, drawn)) != 49)
PYTHON

# a page on the standard output is alone there
expect 0 train lr --data data.svm --epochs 1 --report -
[ "$(head -c 9 "$out")" = '<!doctype' ] || fail 'text before the page'
tail -n 1 "$out" | grep -q '</html>$' || fail 'text behind the page'
says 'parameters hash'
expect 0 compare lr --data data.svm --runtime sim --workers 2 --clocks 2 --protocols bsp,ssp/con --report -
[ "$(head -c 9 "$out")" = '<!doctype' ] || fail 'text before the page of compare'
says 'speed-up'
