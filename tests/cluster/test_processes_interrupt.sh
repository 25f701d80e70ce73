# An interrupt while processes weigh the parameters: that may take as long as it likes, the model so far is written.
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
grep -q '"event":"done".*"loss":null' job.json || job_fail "a loss is told that nobody knows"
