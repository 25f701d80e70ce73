# ssh comes to the hosts without asking, passes exit codes on, and closes a command's standard input when it is killed.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
. "$(dirname "$0")/lib_ssh.sh"
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
