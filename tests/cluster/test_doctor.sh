# The doctor finds a healthy set of hosts healthy, and says of each thing that is wrong which it is and what helps.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
. "$(dirname "$0")/lib_jobs.sh"
rig_private "$@"
rig_hosts a b c
cd "$rig"
job_data
"$RUBATO" key new job.key >/dev/null

doctor()
{
    wanted=$1
    shift
    code=0
    "$RUBATO" doctor "$@" >doctor.log 2>&1 || code=$?
    [ "$code" -eq "$wanted" ] || fail "doctor $*: exit code $code, expected $wanted"
}
finds()
{
    grep -qE -- "$1" doctor.log || fail "the doctor does not find: $1"
}

doctor 0 --hosts a:4,b,c,a --rsh "$rig/rsh" --key job.key --data d.svm --listen :7470
for host in a b c; do
    finds "^ok +$host +is 10\.77\.0\.[123]; this host is 10\.77\.0\.254:7470"
    finds "^ok +$host +remote shell starts rubato .* on host $host$"
    finds "^ok +$host +data: 1 file, [0-9]+ bytes$"
    finds "^ok +$host +reaches this host at 10\.77\.0\.254:7470$"
    finds "^ok +$host +is reached at 10\.77\.0\."
    finds "^ok +$host +clock"
done
finds "^ok +c +reaches a at 10\.77\.0\.1:"
finds "^[0-9]+ checks, 0 failed$"
[ "$(grep -c '^ok  *a  *remote shell' doctor.log)" -eq 1 ] || fail "a host is examined twice"
! pgrep -f "rubato doctor" || fail "helpers are left"

# A name that nobody knows, a remote shell that fails, a program that is not there: one is ill, the others are examined.
doctor 1 --hosts a,nowhere --rsh "$rig/rsh"
finds "^FAILED +nowhere +name: .*cannot be looked up"
finds "^ok +a +remote shell"
doctor 1 --hosts a,b --rsh "$rig/rsh" --rubato /nowhere/rubato
finds "^FAILED +a +remote shell: .*--rubato PATH"
cat >sick-rsh <<RSH
#!/bin/sh
[ "\$1" != b ] || { echo "Permission denied (publickey,password)." >&2; exit 255; }
exec "$rig/rsh" "\$@"
RSH
chmod +x sick-rsh
doctor 1 --hosts a,b --rsh "$rig/sick-rsh"
finds "^FAILED +b +remote shell: .*255.*\"Permission denied"
[ "$(grep -o "Permission denied" doctor.log | wc -l)" -eq 1 ] || fail "last words are told twice"
finds "^ok +a +reaches this host"

# The address that the hosts are told takes the port that is listened on, as a job's lead does.
doctor 1 --hosts a --rsh "$rig/rsh" --listen :7475 --advertise '[fd77::1]'
finds "^FAILED +a +does not reach this host at \[fd77::1\]:7475:"

# Another version; data that is not there, or not the same; a port that is taken; the standard ssh without a key.
printf '#!/bin/sh\nsed 1q >/dev/null\necho "doctor: version 0.0.1" >&2\n' >old-rubato
chmod +x old-rubato
doctor 1 --hosts a --rsh "$rig/rsh" --rubato "$rig/old-rubato"
finds "^FAILED +a +rubato there is 0\.0\.1, here .*; install the same version"
doctor 1 --hosts a --rsh "$rig/rsh" --data nowhere.svm
finds "^FAILED +this host +data: nowhere\.svm: there is no such file"
finds "^FAILED +a +data: nowhere\.svm: there is no such file"
cp d.svm e.svm
doctor 0 --hosts a --rsh "$rig/rsh" --data d.svm e.svm # several paths are several files, there too
finds "^ok +this host +data: 2 files, [0-9]+ bytes$"
finds "^ok +a +data: 2 files, [0-9]+ bytes$"
mkdir folder
doctor 1 --hosts a --rsh "$rig/rsh" --data folder
finds "^FAILED +this host +data: folder is a folder; name the files in it"
finds "^FAILED +a +data: folder is a folder"
doctor 1 --hosts a --rsh "$rig/rsh" --key nowhere.key
finds "^FAILED +this host +key: .*nowhere\.key"
doctor 2 --rsh "$rig/rsh"
finds "--hosts"
on a "$RUBATO" train lr --data d.svm --runtime cluster --workers 1 --listen :7471 --insecure --join-timeout 60 >lead.log 2>&1 &
doctor 0 --hosts a,b --rsh "$rig/rsh" --listen :7471

# Strangers call first: some say nothing, one talks without encryption. None is answered in plain text, none is waited for.
cat >late-rsh <<RSH
#!/bin/sh
until [ -e gate ]; do sleep 0.05; done
exec "$rig/rsh" "\$@"
RSH
chmod +x late-rsh
cat >strangers.py <<'PYTHON'
import os, socket, time
def call():
    for attempt in range(200):
        try:
            return socket.create_connection(("10.77.0.254", 7480), 60)
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise SystemExit("the doctor does not listen")
silent = [call() for i in range(12)]
talker = call()
talker.sendall(b"0" * 64 + b" 0 0\n10.77.0.254:22\n")
open("gate", "w").close()
heard = b""
try:
    while part := talker.recv(100):
        heard += part
except ConnectionResetError:
    pass
if any(32 <= byte < 127 for byte in heard[5:]) or len(heard) > 100:
    raise SystemExit("one without the key was answered: %r" % heard)
for one in silent: # until the doctor has gone
    try:
        one.recv(1)
    except ConnectionResetError:
        pass
PYTHON
on a python3 strangers.py >strangers.log 2>&1 &
strangers=$!
doctor 0 --hosts a,b --rsh "$rig/late-rsh" --listen :7480
finds "^ok +a +reaches this host at 10\.77\.0\.254:7480$"
wait "$strangers" || fail "strangers"

# What a helper answers is printed as text and nothing else.
cat >odd-rsh <<RSH
#!/bin/sh
[ "\$1" != b ] || { printf 'doctor: version %s\ndoctor: listen b\233x:1\n' "$("$RUBATO" --version | sed 's/.* //')" >&2; exit 0; }
exec "$rig/rsh" "\$@"
RSH
chmod +x odd-rsh
doctor 1 --hosts a,b --rsh "$rig/odd-rsh"
finds "^FAILED +a +does not reach b: .*'b[?]x'"

# A host that its neighbours cannot reach, and that cannot call here.
ip netns exec a ip route add blackhole 10.77.0.2/32
doctor 1 --hosts a,b --rsh "$rig/rsh"
finds "^FAILED +a +does not reach b"
ip netns exec b ip route add unreachable 10.77.0.254/32
doctor 1 --hosts b,c --rsh "$rig/rsh" --timeout 10
finds "^FAILED +b +does not reach this host at 10\.77\.0\.254"
finds "^ok +c +reaches this host"
