# The hosts of lib_netns.sh are apart: own names, own addresses, links that can be slowed, cut and mended.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
rig_private "$@"
rig_hosts a b c d e

for host in a b c d e; do
    [ "$(on "$host" hostname)" = "$host" ] || fail "$host has another name"
    [ "$("$rig/rsh" "$host" 'hostname; pwd')" = "$(printf '%s\n/' "$host")" ] || fail "rsh does not come to $host"
done
[ "$(on a getent hosts b | cut -d ' ' -f 1)" = 10.77.0.2 ] || fail "a does not find b by its name"

# One byte each way, or nothing within a second.
cat >"$rig/listen.py" <<'PYTHON'
import socket
with socket.create_server(("", 7000)) as listener:
    while True:
        peer, address = listener.accept()
        with peer:
            if peer.recv(1) == b"?":
                peer.sendall(address[0].encode())
PYTHON
cat >"$rig/ask.py" <<'PYTHON'
import socket, sys
with socket.create_connection((sys.argv[1], 7000), 1) as peer:
    peer.sendall(b"?")
    print(peer.recv(100).decode())
PYTHON
on b python3 "$rig/listen.py" >"$rig/listen.log" 2>&1 &
rig_until 20 on a python3 "$rig/ask.py" b || fail "a does not reach b"
[ "$(on a python3 "$rig/ask.py" b)" = 10.77.0.1 ] || fail "b does not see a under a's address"
[ "$(on e python3 "$rig/ask.py" b)" = 10.77.0.5 ] || fail "b does not see e under e's address"
[ "$(python3 "$rig/ask.py" b)" = 10.77.0.254 ] || fail "b does not see login under its address"

rig_link b down
if on a python3 "$rig/ask.py" b >/dev/null 2>&1; then
    fail "a reaches b although the link is down"
fi
rig_link b up
rig_until 20 on a python3 "$rig/ask.py" b || fail "a does not reach b again"

rig_limit a 20mbit
tc qdisc show dev port-a | grep -q 'tbf .*rate 20Mbit' || fail "a's link is not limited"
[ "$(on a python3 "$rig/ask.py" b)" = 10.77.0.1 ] || fail "a does not reach b over a slow link"
rig_unlimit a
