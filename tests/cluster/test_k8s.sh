# The Kubernetes manifests fit together, their command is one of rubato's, and with the environment that Kubernetes would
# give, on hosts that have the pods' names, every process knows its rank and finds rank 0; the very command trains a model.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
. "$(dirname "$0")/lib_jobs.sh"
rig_private "$@"
tests=$(cd "$(dirname "$0")" && pwd)
for python in python3 /usr/bin/python3 none; do
    [ "$python" != none ] || skip "python3 has no yaml (scripts/setup test installs it)"
    ! "$python" -c 'import yaml' 2>/dev/null || break
done

mkdir "$rig/pods"
"$python" "$tests/k8s.py" "$tests/../../deploy/k8s" "$rig/pods" || fail "the manifests do not fit together"
pods=$(find "$rig/pods" -name '*.env' | wc -l)

# The words are a command and options that it has.
[ "$(sed -n 1p "$rig/pods/0.words")" = rubato ] || fail "the container runs something else"
command=$(sed -n 2p "$rig/pods/0.words")
"$RUBATO" "$command" --help >"$rig/help.log" || fail "rubato has no command $command"
grep '^--' "$rig/pods/0.words" | while read -r option; do
    grep -q -- "^ *$option\\b" "$rig/help.log" || fail "rubato $command has no option $option"
done

index=0
while [ "$index" -lt "$pods" ]; do
    rig_hosts "rubato-$index"
    sed "s/rubato-$index\$/& rubato-$index.rubato/" "$rig/hosts" >"$rig/hosts.new"
    cat "$rig/hosts.new" >"$rig/hosts"
    index=$((index + 1))
done
while [ "$index" -gt 0 ]; do
    index=$((index - 1))
    # shellcheck disable=SC2046 # NAME=value words without spaces
    on "rubato-$index" env $(cat "$rig/pods/$index.env") "$RUBATO_STANDING" >"$rig/pod-$index.log" 2>&1 &
done
wait
[ "$(cat "$rig"/pod-*.log | grep -c '^kubernetes ./4 .* met=rubato-0.rubato port=7470')" -eq $((pods - 1)) ] ||
    fail "not all have met the lead"

# The pods' files, as the Secret and the claim would give them, but in our folder; the lead comes up last.
cd "$rig"
job_data
mkdir data key
cp d.svm data/train.svm
"$RUBATO" key new key/job.key >/dev/null
sed -i "s|=/key/|=$rig/key/|" "$rig/pods"/*.env
sed -i "s|^/data/|$rig/data/|" "$rig/pods"/*.words
pods_left=$pods
while [ "$pods_left" -gt 0 ]; do
    pods_left=$((pods_left - 1))
    sed 1d "$rig/pods/$pods_left.words" | tr '\n' '\0' >"words-$pods_left"
    # shellcheck disable=SC2046 # NAME=value words without spaces
    on "rubato-$pods_left" env $(cat "$rig/pods/$pods_left.env") xargs -0 "$RUBATO" <"words-$pods_left" >"$rig/pod-$pods_left.log" 2>&1 &
    eval "pod_$pods_left=$!"
done
while [ "$pods_left" -lt "$pods" ]; do
    eval "wait \$pod_$pods_left" || fail "pod $pods_left"
    pods_left=$((pods_left + 1))
done
[ -s data/model.rbt ] || fail "there is no model"
"$RUBATO" info data/model.rbt >/dev/null || fail "the model is none"
