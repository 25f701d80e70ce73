#!/bin/sh
# rubato bench net between two network namespaces that a virtual cable connects, plain and encrypted: two hosts on one
# machine. Needs root and iproute2. Usage: net_netns.sh [RATE], where RATE limits the cable as tc says it (1gbit).
set -eu
rubato=${RUBATO:-$(dirname "$0")/../build/release/rubato}
if [ "$(id -u)" -ne 0 ] || ! command -v ip >/dev/null; then
    echo 'not measured: network namespaces need root and iproute2'
    exit 0
fi
one=rubato-bench-$$-1
two=rubato-bench-$$-2
trap 'ip netns delete "$one" 2>/dev/null || true; ip netns delete "$two" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
ip netns add "$one"
ip netns add "$two"
ip -n "$one" link add cable type veth peer name cable netns "$two"
number=0
for space in "$one" "$two"; do
    number=$((number + 1))
    ip -n "$space" address add "10.78.0.$number/24" dev cable
    ip -n "$space" link set cable up
    ip -n "$space" link set lo up
    [ -z "${1:-}" ] || ip netns exec "$space" tc qdisc add dev cable root tbf rate "$1" burst 256kb latency 50ms
done
ip netns exec "$one" "$rubato" bench net --netns "/run/netns/$two" --address 10.78.0.2
