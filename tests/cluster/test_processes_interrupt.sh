# The end of a job while processes weigh the parameters, which may take as long as it likes: after an interrupt the model so far is written;
# when the lead is gone, a process that was started by hand does not stay behind.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2154 # job comes from there
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
job_data

job_start "$RUBATO" launch --local 2 --servers 1 -- train "$RUBATO_SLOW" --data d.svm --lr 0.01 --sync ssp --clocks 100000000 --eval-every 1 \
    --json job.json --out model.rbt
job_clock 2
touch slow
eventually 60 test -e weighing || job_fail "nobody weighs"
kill -INT "$job"
job_end 130
job_says "the result is the model so far"
[ -s model.rbt ] || job_fail "there is no model"
rm slow weighing
grep -q '"event":"done".*"loss":null' job.json || job_fail "a loss is told that nobody knows"

job_start "$RUBATO" train "$RUBATO_SLOW" --data d.svm --lr 0.01 --runtime cluster --workers 1 --sync bsp --clocks 100000000 --eval-every 1 \
    --colocate on --listen "unix:@rubato-interrupt-$$" --json job.json
"$RUBATO" node --join "unix:@rubato-interrupt-$$" >node 2>&1 &
node=$!
job_clock 2
touch slow
eventually 60 test -e weighing || job_fail "nobody weighs"
kill -KILL "$job"
code=0
wait "$node" || code=$?
[ "$code" -eq 7 ] || fail "a node that weighs for a lead that is gone ends with $code: $(cat node)"
grep -q "is gone" node || fail "it does not say why: $(cat node)"

# Ctrl-C while the launcher writes the model, to a pipe that holds less than that: it is written to its end
printf '1 1:1 100000:1\n-1 2:1\n' >many.svm
mkfifo model
job_start "$RUBATO" launch --local 1 -- train lr --data many.svm --lr 0.1 --clocks 1 --out model
python3 -c '
import os, signal, sys
with open("model", "rb") as model, open("late.rbt", "wb") as copy: # open: the writer is there
    os.kill(int(sys.argv[1]), signal.SIGINT)
    copy.write(model.read())
' "$job"
job_end 130
job_says "all that it was to write is there"
expect 0 info late.rbt
