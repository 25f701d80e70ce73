# ssh comes to the hosts without asking, passes exit codes on, and closes a command's standard input when it is killed. Jobs
# over it give what one process gives; when they end, and however they end, nobody is left on the other hosts.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
. "$(dirname "$0")/lib_ssh.sh"
. "$(dirname "$0")/lib_jobs.sh"
rig_private "$@"
rig_hosts a b
rig_ssh a b

[ "$(ssh -o BatchMode=yes b hostname)" = b ] || fail "ssh b comes to another host"
[ "$(on a ssh -o BatchMode=yes b 'echo $SSH_CLIENT' | cut -d ' ' -f 1)" = 10.77.0.1 ] || fail "b does not see a"
code=0
ssh -o BatchMode=yes a 'exit 7' || code=$?
[ "$code" -eq 7 ] || fail "the exit code does not come through: $code"
code=0
ssh -o BatchMode=yes nowhere true 2>/dev/null || code=$?
[ "$code" -eq 255 ] || fail "a host that is not there gives $code"

mkfifo "$rig/keys"
ssh -o BatchMode=yes a "cat >'$rig/got'; echo >'$rig/ended'" <"$rig/keys" &
ssh=$!
exec 9>"$rig/keys"
echo key >&9
rig_until 20 grep -q key "$rig/got" || fail "the first line does not arrive"
kill -9 "$ssh"
rig_until 20 test -s "$rig/ended" || fail "the remote command does not see the end of its input"

cd "$rig"
job_data
job_local 3 --sync bsp --servers 2 --clocks 30
# shellcheck disable=SC2086 # options
"$RUBATO" launch --hosts a:2,b --servers 2 -- train $learning --sync bsp --clocks 30 --json job.json >job.log 2>&1 ||
    fail "a job over ssh"
[ "$(job_hash job.json)" = "$hash" ] || fail "a job over ssh does not give what one process gives"

nobody()
{
    ! pgrep -f "rubato node" >/dev/null
}
nobody || fail "processes are left on the hosts"
for signal in INT KILL; do
    # shellcheck disable=SC2086 # options
    job_start "$RUBATO" launch --hosts a:2,b --servers 1 -- train $learning --sync ssp --clocks 100000000 \
        --eval-every 100 --json job.json
    job_clock 2
    ! nobody || fail "there are no processes on the hosts"
    kill "-$signal" "$job"
    wait "$job" || :
    eventually 10 nobody || fail "after SIG$signal processes are left on the hosts"
done

code=0
# shellcheck disable=SC2086 # options
"$RUBATO" launch --hosts a,nowhere -- train $learning --sync bsp >job.log 2>&1 || code=$?
[ "$code" -eq 1 ] || fail "a host that is not there: exit code $code"
grep -q 'nowhere' job.log || fail "the host that is not there is not named"
