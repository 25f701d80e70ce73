# Each process of a job reads its own part of the data, and keeps no more than that.
#
# Reads: every process has a copy of the file that is true in its own range of bytes alone; elsewhere there are question marks, no row
# and no key. The lead, who hosts no worker, has no file. The result is that of the true file; and a method that reads all, lasso,
# meets the question marks, so they are noticed.
# Keeps: of four processes each has far less in memory than the rows of all take; those of lasso have more.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
name=unix:@rubato-parts-$$
"$RUBATO" gen lr --out d.svm --rows 900 --cols 60 --nnz 8 --seed 3
awk 'BEGIN { for (i = 0; i < 20000; i++) printf "%d\tk%d\n", i * i, int(sqrt(i * 7 % 900)) }' >events.tsv
mkdir lead rank-1 rank-2 rank-3

# Where src/data/slicing.c and part.c cut: equal ranges of bytes, moved to the ends of lines. Events are dealt in pieces of 32 KiB,
# and a line belongs to the piece that it begins in (src/data/events.c).
for file in d.svm events.tsv; do
    python3 - $file 3 <<'PYTHON'
import sys
name, n = sys.argv[1], int(sys.argv[2])
with open(name, "rb") as file:
    true = file.read()
def whose(at):
    return at // 32768 % n if name == "events.tsv" else next(k for k in range(n) if at < len(true) * (k + 1) // n)
def masked(text):
    return bytes(c if c == 10 else ord("?") for c in text)
files = [open("rank-%d/%s" % (k + 1, name), "wb") for k in range(n)]
at = 0
for line in true.splitlines(keepends=True):
    for k in range(n):
        files[k].write(line if k == whose(at) else masked(line))
    at += len(line)
PYTHON
done

# $1: the exit code of the job; behind it: what to train, with a worker on each of the ranks 1 to 3
in_parts()
{
    wanted=$1
    shift
    job_start env -C lead "$RUBATO" train "$@" --workers 3 --sync bsp --runtime cluster --colocate on --listen "$name" --json ../job.json
    for rank in 1 2 3; do
        env -C rank-$rank "$RUBATO" node --join "$name" --rank $rank >node-$rank 2>&1 &
    done
    job_end "$wanted"
    wait
}

# $*: what to train
reads_its_part()
{
    expect 0 train "$@" --workers 3 --sync bsp --json local.json --quiet
    in_parts 0 "$@"
    [ "$(job_hash job.json)" = "$(job_hash local.json)" ] || job_fail "$*: processes that have the truth in their own ranges alone give something else"
}

reads_its_part lr --data d.svm --lr 0.1 --clocks 20
reads_its_part kmeans --data d.svm --clusters 3 --epochs 5 # from 600 of the rows
reads_its_part kmeans --data d.svm --clusters 3 --epochs 5 --start random
reads_its_part l1lr --data d.svm --l1 0.01 --epochs 5
reads_its_part mf --data d.svm --format libsvm --rank 4 --epochs 2
reads_its_part sketch --data events.tsv --column 2 --width 2^10
cp d.svm lead
in_parts 1 lasso --data d.svm --l1 0.01 --epochs 5
job_says "d.svm:"
job_says "?"

# Who reads all and has other rows in a file of the same size is named; the truth again, and all is well.
for rank in 1 2 3; do
    cp d.svm rank-$rank
done
in_parts 0 lasso --data d.svm --l1 0.01 --epochs 5
sed -i '500s/:[0-9]/:7/' rank-2/d.svm
cmp -s d.svm rank-2/d.svm && fail "nothing was changed"
[ "$(wc -c <d.svm)" -eq "$(wc -c <rank-2/d.svm)" ] || fail "the size was changed"
in_parts 1 lasso --data d.svm --l1 0.01 --epochs 5
job_says "train: rank 2 on host $(hostname): d.svm: has other rows here than for the lead (rank 0 on host $(hostname))"
job_says "give all hosts the same file"

# Who does not see the data is named, whoever is the first to say so: the one that has no file, and of several the first.
blamed()
{
    for _ in 1 2 3; do
        in_parts 1 lr --data d.svm --lr 0.1
        job_says "train: rank $1 on host $(hostname): d.svm: cannot be opened"
    done
}
for rank in 3 2 1; do
    rm rank-$rank/d.svm
    blamed $rank
done
expect 1 launch --local 2 -- train lr --data nowhere.svm
says "launch: rank 1 on host $(hostname): nowhere.svm: cannot be opened"

# Sanitizers have memory of their own.
[ "$RUBATO_SANITIZED" -eq 0 ] || exit 0
"$RUBATO" gen lr --out big.svm --rows 60000 --cols 5000 --nnz 60 --seed 1
whole=$((60000 * 60 * 8 / 1024))

# $1: what a process with a worker has in memory while the job runs, `more` than the rows of all take or `less` than three quarters of
# that; behind it: what to train
keeps()
{
    much=$1
    shift
    job_start "$RUBATO" launch --local 4 -- train "$@" --data big.svm --workers 4 --sync bsp --clocks 100000 --json job.json --quiet
    job_clock 2
    for rank in 1 2 3 4; do
        has=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$(job_rank $rank)/status")
        printf '%s: rank %d has %d of %d KiB\n' "$1" $rank "$has" $whole
        case $much in
        less) [ "$has" -lt $((whole * 3 / 4)) ] || job_fail "$*: rank $rank has $has KiB, the rows of all take $whole" ;;
        more) [ "$has" -gt $whole ] || job_fail "$*: rank $rank has but $has KiB, the rows of all take $whole" ;;
        esac
    done
    kill -INT "$job"
    job_end 130
}

keeps less lr --lr 0.1
keeps less kmeans --clusters 2
keeps more lasso --l1 0.1
