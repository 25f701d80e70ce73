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
