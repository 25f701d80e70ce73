# Installs the build and makes the examples' shared objects against what was installed; each trains on every runtime, with
# the same bits under BSP, and its model can be used. Usage: test_examples.sh BUILD SOURCES CC NM VERSION
set -eu
build=$1
sources=$2
cc=$3

DESTDIR=$PWD/staged cmake --install "$build" --prefix /opt/rubato >install.log || { cat install.log; exit 1; }
mv staged/opt/rubato prefix
prefix=$PWD/prefix
rubato=$prefix/bin/rubato
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name rubato.pc)")
export PKG_CONFIG_PATH

fail() {
    echo "FAILED: $*"
    exit 1
}

for example in poisson moments; do
    source=$(find "$prefix" -name "$example.c")
    [ -n "$source" ] || fail "$example.c was not installed"
    # shellcheck disable=SC2046 # flags are meant to be split
    "$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror -shared -fPIC -o "$example.so" "$source" \
        $(pkg-config --cflags rubato) -lm
done
[ "$(wc -l <"$sources/../../examples/moments.c")" -lt 100 ] || fail 'the table program has 100 lines or more'

"$rubato" gen regression --out numbers.svm --rows 600 --cols 30 --nnz 6 --seed 2
awk '{ $1 = int($1 * $1 * 3) % 7; print }' numbers.svm >counts.svm # what is counted is never negative

hash() {
    grep -o '"param_hash":"[0-9a-f]*"' "$1"
}
run() { # OPTIONS...: on every runtime, the same bits
    "$rubato" train "$@" --workers 3 --sync bsp --out local.rbt --json local.json --quiet
    "$rubato" train "$@" --workers 3 --sync bsp --runtime sim --json sim.json --quiet
    "$rubato" launch --local 3 -- train "$@" --workers 3 --sync bsp --json cluster.json --quiet
    [ "$(hash local.json)" = "$(hash sim.json)" ] && [ "$(hash local.json)" = "$(hash cluster.json)" ] ||
        fail "$1 differs between runtimes"
}

# a shared object may make of --delta what it likes: it is part of the job
"$rubato" train poisson.so --data counts.svm --lr 0.01 --epochs 1 --delta 0.25 --json delta.json --quiet
grep -q '"delta":0.25' delta.json || fail '--delta does not reach a model from a shared object'

# what lacks a function is refused by its name, before it is called
for lacks in 'rbt_method m = {.name = "m", .about = "a"}:method:plan' 'rbt_model m = {.name = "g", .about = "a"}:model:size' 'rbt_method m = {0}:method:name'; do
    kind=${lacks#*:}
    cat >bare.c <<EOF
#include <rubato.h>
static const ${lacks%%:*};
const rbt_plugin *rbt_plugin_entry(void);
const rbt_plugin *rbt_plugin_entry(void)
{
    static const rbt_plugin plugin = {.version = RBT_PLUGIN_VERSION, .${kind%:*} = &m};
    return &plugin;
}
EOF
    # shellcheck disable=SC2046
    "$cc" -shared -fPIC -o bare.so bare.c $(pkg-config --cflags rubato)
    code=0
    "$rubato" train ./bare.so --data counts.svm >refused 2>&1 || code=$?
    [ $code -eq 2 ] && grep -q "its ${kind%:*} has no ${kind#*:};" refused || fail "a ${kind%:*} without ${kind#*:}: code $code, $(cat refused)"
done

# a method of which tests choose the fields; what its `judge` says may be no number: that is divergence
cat >made.c <<'EOF'
#include <math.h>
#include <rubato.h>
#ifndef NOT_FINITE
#define NOT_FINITE NAN
#endif
static rbt_err plan(rbt_plan *p, rbt_error *error)
{
    rbt_table table;
    return p->shared ? RBT_OK : rbt_plan_table(p, &(rbt_table_spec){.name = "t", .rows = 1, .cols = 1, .type = RBT_F32}, &table, error);
}
static rbt_err work(rbt_worker *worker, rbt_plan *p, rbt_error *error)
{
    size_t first, n;
    rbt_err err = RBT_OK;
    while (err == RBT_OK && rbt_plan_batch(p, worker, &first, &n)) {
        err = rbt_plan_tell(p, worker, 1, 1, error);
        if (err == RBT_OK)
            err = rbt_clock(worker, error);
    }
    return err;
}
static rbt_err judge(const rbt_plan *p, double told, double *objective, rbt_error *error)
{
    (void)p, (void)error;
    *objective = told > 0 ? NOT_FINITE : told;
    return RBT_OK;
}
static rbt_err pass(rbt_plan *p, uint32_t worker, uint64_t pass, rbt_told *told, rbt_error *error)
{
    (void)p, (void)worker, (void)pass, (void)told, (void)error;
    return RBT_OK;
}
#ifdef OPTIONS
static const rbt_method_option many[OPTIONS + 1] = {[0 ... OPTIONS - 1] = {.name = "o", .most = 1, .about = "a"}};
#endif
static rbt_err keep(const rbt_plan *p, rbt_fitted *fitted, rbt_error *error)
{
    (void)p, (void)fitted, (void)error;
    return RBT_OK;
}
static const rbt_method m = {.name = "made", .about = "a", .plan = plan, .work = work, .keep = keep, MORE};
const rbt_plugin *rbt_plugin_entry(void);
const rbt_plugin *rbt_plugin_entry(void)
{
    static const rbt_plugin plugin = {.version = RBT_PLUGIN_VERSION, .method = &m};
    return &plugin;
}
EOF
make_plugin() { # FIELDS [FLAG]: made.so, a method with more fields
    # shellcheck disable=SC2046
    "$cc" -shared -fPIC "-DMORE=$1" ${2:+"$2"} -o made.so made.c $(pkg-config --cflags rubato)
}
for value in NAN INFINITY; do
    make_plugin '.objective = "ones", .judge = judge' -DNOT_FINITE=$value
    code=0
    "$rubato" train ./made.so --data counts.svm --epochs 2 --workers 2 >refused 2>&1 || code=$?
    [ $code -eq 1 ] && grep -q 'diverged: the objective (ones) became' refused || fail "judged $value: code $code, $(cat refused)"
done

# as many options as there may be, and one more
make_plugin '.options = many' -DOPTIONS=64
"$rubato" train ./made.so --data counts.svm --epochs 1 --workers 2 --quiet || fail '64 options'
make_plugin '.options = many' -DOPTIONS=65
code=0
"$rubato" train ./made.so --data counts.svm --epochs 1 --workers 2 >refused 2>&1 || code=$?
[ $code -eq 1 ] && grep -q 'made.so: its method has more than 64 options' refused || fail "65 options: code $code, $(cat refused)"

# without an objective there is no loss, in shared memory as with servers
make_plugin '.pass = pass'
for sync in hogwild sequential bsp; do
    "$rubato" train ./made.so --data counts.svm --epochs 3 --sync $sync --json silent.json >said 2>&1 || fail "no objective, $sync: $(cat said)"
    grep '"event":"done"' silent.json | grep -q '"clocks":3,' || fail "no objective, $sync: $(cat silent.json)"
    grep -q '"event":"clock".*"clock_min":3,' silent.json || fail "no objective, $sync: no progress in $(cat silent.json)"
    ! grep -q '"loss":[0-9]' silent.json || fail "no objective, $sync: a loss in $(cat silent.json)"
done

run ./moments.so --data counts.svm --epochs 1 --set scale=2
"$rubato" export --model local.rbt --plugin ./moments.so --format text --out moments.txt
awk '{ for (i = 2; i <= NF; i++) { split($i, f, ":"); if (f[1] == 7) sum += 2 * f[2] } } END { print sum / NR }' counts.svm >mean
sed -n '/^# moments/{n;p;}' moments.txt | cut -f7 | paste - mean | awk '{ exit !($1 - $2 < 1e-4 && $2 - $1 < 1e-4) }' || fail 'the mean of feature 7'
"$rubato" train ./moments.so --data counts.svm --workers 2 --set scale=2 --out many.rbt --quiet # ten epochs
"$rubato" export --model many.rbt --plugin ./moments.so --format text --out moments.txt
sed -n '/^# moments/{n;p;}' moments.txt | cut -f7 | paste - mean | awk '{ exit !($1 - $2 < 1e-4 && $2 - $1 < 1e-4) }' || fail 'the mean of several epochs'
"$rubato" info local.rbt --plugin ./moments.so | grep -q 'mean and variance of every feature' || fail 'info'
if "$rubato" info local.rbt >refused 2>&1 || ! grep -q -e '--plugin FILE' refused; then
    fail 'a model of a shared object was read without it'
fi
if "$rubato" train ./moments.so --data counts.svm --set scale=0 >refused 2>&1 || ! grep -q 'out of range' refused; then
    fail 'an option out of range was accepted'
fi

"$rubato" train ./moments.so --help | grep -q -e '--set scale=X' || fail 'its own options are not in the help'
for slip in '--scale 2:give it as --set scale=VALUE' '--set foo=2:it has scale'; do
    # shellcheck disable=SC2086
    if "$rubato" train ./moments.so --data counts.svm ${slip%%:*} >refused 2>&1 || ! grep -q -e "${slip#*:}" refused; then
        fail "${slip%%:*}: $(cat refused)"
    fi
done

run ./poisson.so --data counts.svm --lr 0.02 --epochs 20
"$rubato" predict --model local.rbt --plugin ./poisson.so --data counts.svm --out predicted
# with a bias, the mean of the predictions is that of the counts
awk 'NR == FNR { p += $1; next } { y += $1 } END { exit !(p / FNR > 0.9 * y / FNR && p / FNR < 1.1 * y / FNR) }' predicted counts.svm ||
    fail 'the predictions are not those of a Poisson regression'
for sync in hop adpsgd allreduce asp; do
    "$rubato" train ./poisson.so --data counts.svm --lr 0.02 --sync $sync --workers 4 --quiet || fail "--sync $sync"
done
for sync in hogwild aig psgd round-robin; do # as the texts say
    if "$rubato" train ./poisson.so --data counts.svm --lr 0.02 --sync $sync >refused 2>&1 || ! grep -q 'shared memory; use --sync ssp' refused; then
        fail "--sync $sync: $(cat refused)"
    fi
done
"$rubato" train ./poisson.so --data counts.svm --lr 0.02 --epochs 2 --sync bsp --folds 2 >folds
grep -q '^  folds .*, rmse ' folds || fail "folds of numbers: $(grep folds folds)"
if "$rubato" train ./poisson.so --data counts.svm >refused 2>&1 || ! grep -q 'give --lr' refused; then
    fail 'a step size was found where none can be'
fi
