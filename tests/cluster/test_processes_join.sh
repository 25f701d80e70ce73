# Processes that are started by hand join a lead: those that may. Who may not is told why, and so is the lead; the job goes on.
# When somebody is missing, the lead says who, and ends with its own code. A lead that dies ends everybody.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
job_data
"$RUBATO" key new job.key >/dev/null
"$RUBATO" key new other.key >/dev/null
name=unix:@rubato-join-$$

job_local 2 --sync bsp --clocks 20
# The lead, alone so far.
alone()
{
    # shellcheck disable=SC2086 # options
    job_start "$RUBATO" train $learning --runtime cluster --workers 2 --sync bsp --json job.json "$@"
}
said()
{
    grep -qF -- "$1" job.out
}
port=$((20000 + $$ % 10000))

export RUBATO_KEY_FILE=job.key # is read, where --key says nothing
alone --clocks 20 --listen "127.0.0.1:$port"
unset RUBATO_KEY_FILE
expect 1 node --join "127.0.0.1:$port" --key other.key
says "refused us"
says "give all processes the same key file"
eventually 60 said "give all processes the same key file" || job_fail "the lead does not say that a key is wrong"
expect 2 node --join "127.0.0.1:$port"
says "give the key file that the lead has with --key FILE"
export RUBATO_KEY_FILE=other.key
expect 1 node --join "127.0.0.1:$port"
says "give all processes the same key file"
unset RUBATO_KEY_FILE
expect 1 node --join "127.0.0.1:$port" --insecure
says "refused us"
expect 2 node --join "127.0.0.1:$port" --key job.key --rank 9
says "there is no rank 9 to join in this job, only 1 to 3"
eventually 60 said "may not join: there is no rank 9" || job_fail "the lead does not say that a rank is wrong"
python3 - "$port" <<'PYTHON' || fail "garbage is not cut off"
import os, socket, sys
for garbage in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + b"x" * 72, os.urandom(4096), b"RUBATO\r\n" + b"\xff" * 200):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as peer:
        peer.settimeout(60)
        try:
            peer.sendall(garbage)
            while peer.recv(4096):
                pass
        except ConnectionError:
            pass
PYTHON
eventually 60 said "does not speak Rubato's protocol" || job_fail "the lead does not say that garbage came"
for rank in 1 2 3; do
    "$RUBATO" node --join "127.0.0.1:$port" --key job.key >"node-$rank" 2>&1 &
    eval "node_$rank=$!"
done
job_end 0
for rank in 1 2 3; do
    eval "wait \$node_$rank" || fail "a node: $(cat node-$rank)"
done
[ "$(job_hash job.json)" = "$hash" ] || fail "processes that joined by hand give something else"

# Somebody is missing.
alone --clocks 20 --listen "$name" --join-timeout 2 --colocate on
"$RUBATO" node --join "$name" --rank 2 >node-2 2>&1 &
job_end 4
job_says "missing: rank 1"
job_says "here: rank 2 on host"
wait $! && fail "a node of a job that did not come about ends with 0"
grep -q "not joined within 2 s" node-2 || fail "the node does not say why the job ended: $(cat node-2)"

# Who gives up encryption is told what that means; the port is open to all without a key.
alone --clocks 20 --listen "127.0.0.1:$port" --join-timeout 1 --insecure
job_end 4
job_says "neither encrypted nor authenticated, and anybody who reaches 127.0.0.1:$port can join"
alone --clocks 20 --listen "127.0.0.1:$port" --join-timeout 1 --insecure --key job.key
job_end 4
job_says "to join at 127.0.0.1:$port takes the key"

# Options of a node are checked; a lead whom nobody has told of others says how they are started, also by hand.
expect 2 node --join "$name" --shm bogus
says "--shm 'bogus' is unknown; choose one of auto|on|off"
# shellcheck disable=SC2086 # options
expect 2 train $learning --runtime cluster
says "rubato node --join HOST:7470 --key FILE"

# Nobody leads.
expect 4 node --join "unix:@rubato-nobody-$$" --join-timeout 1
says "rubato-nobody-$$"

# The lead dies: the others say so and end. A job without a key takes processes of its own user.
alone --clocks 100000000 --eval-every 100 --listen "$name" --colocate on
for rank in 1 2; do
    "$RUBATO" node --join "$name" --rank "$rank" >"node-$rank" 2>&1 &
    eval "node_$rank=$!"
done
if [ "$(id -u)" -eq 0 ]; then
    code=0
    chmod 755 "$work"
    setpriv --reuid 65534 --clear-groups "$RUBATO" node --join "$name" >node-3 2>&1 || code=$?
    [ "$code" -eq 1 ] || fail "another user's process ends with $code: $(cat node-3)"
    grep -q "takes processes of its own user" node-3 || fail "another user is not told: $(cat node-3)"
    eventually 60 said "it belongs to user 65534" || job_fail "the lead does not say that another user came"
fi
job_clock 1
kill -9 "$job"
job_end 137
for rank in 1 2; do
    code=0
    eval "wait \$node_$rank" || code=$?
    [ "$code" -eq 7 ] || fail "the lead was killed, and rank $rank ends with $code"
    grep -q "node: the lead on host [^ ]* is gone: " "node-$rank" || fail "rank $rank does not say that the lead is gone: $(cat node-$rank)"
done

# A worker that was started by hand is started again by hand.
learning=$holding
job_local 2 --sync bsp --clocks 60
job_hold
alone --clocks 60 --listen "$name" --on-worker-loss wait
for rank in 1 2 3; do
    "$RUBATO" node --join "$name" --rank "$rank" >"node-$rank" 2>&1 &
    eval "node_$rank=$!"
done
job_clock 2
# shellcheck disable=SC2154 # set by eval
kill -9 "$node_2"
eventually 60 said "waiting for it to come back" || job_fail "the lead does not say that it waits"
job_release
"$RUBATO" node --join "$name" >node-2 2>&1 || fail "the one that came back: $(cat node-2)"
job_end 0
[ "$(job_hash job.json)" = "$hash" ] || fail "a worker that came back has changed the result"
wait
