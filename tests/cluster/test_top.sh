#!/bin/sh
# A running job is seen from outside: before it starts, while it runs, when it ends; and who looks changes nothing.
# shellcheck disable=SC1091,SC2154 # fail, out come from there
. "$(dirname "$0")/../cli/lib.sh"

small_data
"$RUBATO" key new job.key >/dev/null
"$RUBATO" key new other.key >/dev/null

# Starts a job in the background; $address is where it is watched, $pid the launcher. What it prints goes to $1.log.
start()
{
    name=$1
    shift
    mkfifo "$name.out"
    "$RUBATO" launch --listen 127.0.0.1:0 --key job.key "$@" >"$name.out" 2>"$name.err" &
    pid=$!
    exec 8<"$name.out"
    address=
    while [ -z "$address" ] && read -r word rest <&8; do
        [ "$word" != watch ] || address=${rest#rubato top }
    done
    here=${address##* also }
    here=${here%)}
    address=${address%% *}
    cat <&8 >"$name.log" &
    exec 8<&-
}

# --- before all are there: this remote shell waits at a gate
mkfifo gate
cat >shell <<'SHELL'
#!/bin/sh
read -r _ <gate || :
exec sh -c "$2"
SHELL
chmod +x shell
start early --hosts a:2 --rsh ./shell --servers 1 -- train lr --data data.svm --sync bsp --epochs 50 --lr 1
expect 0 top "$address" --key job.key --once
prints "lr on data.svm, bsp"
prints "waiting for processes"
prints "0 of 3 processes are there"
prints "missing: rank 1 on a, rank 2 on a, rank 3 on a"
expect 0 top "$here" --key job.key --once --json -
check "$out" 'last["phase"] == "joining" and [p["state"] for p in last["processes"]] == ["ready"] + 3 * ["missing"]'

# --- too many look: one of 17 is refused, the others see the job through
mkfifo refused
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do
    { "$RUBATO" top "$address" --key job.key --json "see.$i" >/dev/null 2>"see.$i.err" || echo "$i" >refused; } &
done
read -r loser <refused
grep -q "16 watch this job already" "see.$loser.err" || fail "the seventeenth was not told why"
exec 9>gate
exec 9>&-
wait "$pid" || fail "the job failed with watchers: $(cat early.err)"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do
    [ "$i" -eq "$loser" ] || tail -n 1 "see.$i" | grep -q '"event":"end","exit_code":0' || fail "watcher $i missed the end"
done
hash=$(sed -n 's/.*hash //p' early.log)
expect 0 train lr --data data.svm --sync bsp --epochs 50 --lr 1 --workers 2 --servers 1
prints "hash $hash"

# --- while it runs
start long --local 3 --servers 1 -- train lr --data data.svm --epochs 100000000 --lr 1 --on-worker-loss stop
mkfifo seen
"$RUBATO" top "$address" --key job.key --json seen >top.out 2>&1 &
watcher=$!
exec 7<seen
running=
while [ -z "$running" ] && read -r line <&7; do
    case $line in *'"phase":"running"'*'"worker":2'*'"clock":'*) running=$line ;; esac
done
printf '%s\n' "$running" >running.json
check running.json 'len(last["workers"]) == 3 and sorted(w["rank"] for w in last["workers"]) == [1, 2, 3]'
expect 0 top "$address" --key job.key --once
prints "rows/s"
prints "servers: rank 4 on"
expect 0 top "$address" --key job.key --once --json -
check "$out" 'len(lines) == 1 and first["phase"] == "running" and first["rows_per_second"] > 0 and len(first["workers"]) == 3'
RUBATO_KEY_FILE=job.key expect 0 top "$address" --once
prints "rows/s"
{ timeout 60 "$RUBATO" top "$address" --key job.key 2>/dev/null || echo $? >code; } | head -n 1 >/dev/null
[ "$(cat code)" -eq 141 ] || fail "top without a reader ends with $(cat code)"
expect 1 top "$address" --key other.key --once
says "key"
child=$(pgrep -P "$pid" -f -- '--rank 2' | head -n 1)
kill -9 "$child"
cat <&7 >rest.json
exec 7<&-
wait "$watcher" || fail "top failed: $(cat top.out)"
wait "$pid" && fail "the job went on without its worker"
check rest.json 'last["event"] == "end" and last["exit_code"] == 7 and "rank 2" in last["reason"]'
grep -q "the job has ended: rank 2" top.out || fail "no last sentence"

# --- nobody there, and wrong usage
expect 1 top "$address" --key job.key --once
says "nothing listens there"
expect 2 top
says "which job?"
