#!/bin/sh
# --speed and --cluster: hosts of the simulator that differ. A slow host takes as much longer as it is slower, a slow link
# too; under bsp nobody's speed changes the parameters; who takes part is told by the file; refusals with file and line.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data
sim() # JSON, OPTIONS...
{
    json=$1
    shift
    expect 0 train lr --data data.svm --runtime sim --sync bsp --lr 1 --epochs 3 --eval-every 0 --quiet --json "$json" "$@"
}
# what computing takes, and nothing else: a worker of half the speed is one that is twice as slow
free='--net bw=1000000Gbit,lat=0 --cost sample=1ms,nnz=0,byte=0,message=0'
# shellcheck disable=SC2086
sim even.json --workers 4 $free
# shellcheck disable=SC2086
sim straggler.json --workers 4 $free --straggler worker=3,slow=2
# shellcheck disable=SC2086
sim named.json --workers 4 $free --speed 3=0.5
# shellcheck disable=SC2086
sim listed.json $free --speed 1,1,1,0.5
# shellcheck disable=SC2086
sim fast.json $free --speed 4,4,4,4
printf '# hosts\ncount=3,workers=1\nworkers=1,speed=0.5 # an old one\n' >hosts
# shellcheck disable=SC2086
sim file.json $free --cluster hosts
python3 - <<'PYTHON' || fail 'times or parameters are not those of the speeds'
import json
done = {n: json.loads(open(n + ".json").readlines()[-1]) for n in "even straggler named listed fast file".split()}
assert len({d["param_hash"] for d in done.values()}) == 1
near = lambda a, b: abs(a / b - 1) < 1e-6
slow = done["straggler"]["seconds"]
assert near(slow, 2 * done["even"]["seconds"])
assert all(near(done[n]["seconds"], slow) for n in ("named", "listed", "file"))
assert near(done["fast"]["seconds"], done["even"]["seconds"] / 4)
PYTHON
check listed.json 'first["workers"] == "4" or first["workers"] == 4'

# links: behind a thin one everybody waits; who shares a host with its server sends nothing over links
printf 'count=3,workers=1\nworkers=1,bw=1Mbit\nservers=1\n' >thin
printf 'workers=4,servers=1\n' >one
printf 'count=4,workers=1\ncount=1,servers=1\n' >apart
for kind in thin one apart; do
    sim "$kind.json" --cluster "$kind"
done
python3 - <<'PYTHON' || fail 'times are not those of the links'
import json
done = {n: json.loads(open(n + ".json").readlines()[-1]) for n in "thin one apart".split()}
assert len({d["param_hash"] for d in done.values()}) == 1
assert done["one"]["seconds"] < done["apart"]["seconds"] < done["thin"]["seconds"]
PYTHON
# hosts and --net say the same: hosts that are all alike and all alone change nothing
sim plain.json --workers 4
check apart.json "last['seconds'] == $(tail -n 1 plain.json | sed 's/.*"seconds":\([0-9.e-]*\),.*/\1/')"

# the file says who takes part, also without servers, and compare takes it
expect 0 train lr --data data.svm --runtime sim --sync hop --lr 1 --epochs 1 --cluster thin
prints '4 workers, no servers'
prints 'cluster    thin'
expect 0 compare lr --data data.svm --runtime sim --protocols bsp,hop --lr 1 --epochs 1 --cluster one

refused() # WHAT IT SAYS, OPTIONS...
{
    sentence=$1
    shift
    expect 2 train lr --data data.svm "$@" --quiet
    says "$sentence"
}
refused '--speed describes the simulator and makes no sense with --runtime local' --speed 1,1
refused '--cluster describes the simulator and makes no sense with --runtime local' --cluster hosts
refused '--speed and --cluster both say how fast' --runtime sim --speed 1,1 --cluster hosts
refused '--workers 3, but hosts has 4 workers' --runtime sim --workers 3 --cluster hosts
refused '--servers 2, but thin has 1 servers' --runtime sim --servers 2 --cluster thin
refused 'has 2 speeds, but the job has 3 workers' --runtime sim --workers 3 --speed 1,1
refused 'names no workers of the job' --runtime sim --workers 3 --speed 7=2
printf 'workers=1\nworkers=1,sped=2\n' >bad
refused "bad:2: 'sped' is not a key" --runtime sim --cluster bad
expect 1 train lr --data data.svm --runtime sim --cluster nowhere --quiet
says nowhere
expect 2 launch --local 2 -- train lr --data data.svm --speed 1,1
says '--speed describes the simulator'
