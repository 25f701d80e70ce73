# shellcheck shell=sh
# Hosts on one machine: network namespaces with names and addresses of their own on a common switch. Sourced by the tests.
#
#   rig_private "$@"        first of all: runs this script again in mount, network, process and name spaces of its own
#   rig_hosts a b c         makes hosts: a = 10.77.0.1, b = 10.77.0.2, ...; this script runs on "login", 10.77.0.254
#   on HOST COMMAND...      runs a command there
#   rig_limit HOST RATE     its link carries no more, both ways (tc tbf: 100mbit); rig_unlimit HOST
#   rig_link HOST down|up   pulls its cable; nobody is told
#   rig_apart A B           these two do not hear each other any more, all others do; rig_together A B
#   rig_until N COMMAND...  tries until it succeeds, at most N seconds
#   rig_need COMMAND...     skips the test unless all of these are installed
#   fail SENTENCE           ends the test as failed, with what is in $rig/*.log
#
# $rig is an empty folder, also TMPDIR. $rig/rsh HOST STRING runs a shell line there as ssh would: another folder, hardly
# any environment.
#
# Nothing can be left behind, however the test ends: all processes live in one process namespace, which the kernel ends with
# its first process, and that with us; namespaces, links, mounts and host names go with the last process. So tests do
# not disturb each other either: each has all addresses, ports and names for itself.

set -eu

skip()
{
    [ -z "${RBT_NO_SKIP:-}" ] || fail "$* (RBT_NO_SKIP is set)"
    echo "SKIPPED: $*" >&2
    exit 77
}

fail()
{
    echo "FAILED: $*" >&2
    for log in "${rig:-/nowhere}"/*.log; do
        [ ! -s "$log" ] || { echo "--- ${log##*/}" && tail -n 20 "$log"; } >&2
    done
    exit 1
}

rig_need()
{
    for command in "$@"; do
        command -v "$command" >/dev/null || skip "$command is not installed (scripts/setup test cluster installs it)"
    done
}

rig_until()
{
    tries=$(($1 * 20))
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
    done
}

rig_private()
{
    if [ -n "${RBT_RIG:-}" ]; then
        rig=$RBT_RIG
        unset RBT_RIG
        rig_inside
        return
    fi
    PATH=$PATH:/usr/sbin:/sbin
    export PATH
    rig_need unshare nsenter setpriv ip tc
    spaces="--mount --net --pid --ipc --uts --fork --kill-child --mount-proc"
    # Who is not root may be so in a user namespace.
    [ "$(id -u)" -eq 0 ] || spaces="--map-root-user $spaces"
    # shellcheck disable=SC2086 # options
    unshare $spaces true 2>/dev/null || skip "namespaces may not be made here: be root, or allow user namespaces"

    rig=$(mktemp -d "${TMPDIR:-/tmp}/rubato-rig.XXXXXX")
    trap 'rm -rf "$rig"' EXIT
    # shellcheck disable=SC2086 # options
    RBT_RIG=$rig TMPDIR=$rig setpriv --pdeathsig KILL unshare $spaces sh "$0" "$@" </dev/null &
    inside=$!
    trap 'kill -9 $inside 2>/dev/null; exit 130' HUP INT TERM
    status=0
    wait "$inside" || status=$?
    exit "$status"
}

rig_inside()
{
    trap 'exit 130' HUP INT TERM
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir /run/netns /run/lock
    ip link set lo up
    hostname login
    ip link add name switch type bridge
    ip address add 10.77.0.254/24 dev switch
    ip link set switch up
    printf '127.0.0.1 localhost\n10.77.0.254 login\n' >"$rig/hosts"
    mount --bind "$rig/hosts" /etc/hosts
    rig_count=0
    cat >"$rig/rsh" <<RSH
#!/bin/sh
host=\$1
shift
cd /
exec nsenter --net=/run/netns/\$host --uts=/run/uts-\$host env -i PATH="\$PATH" HOME=/ ASAN_OPTIONS="\${ASAN_OPTIONS:-}" \\
    UBSAN_OPTIONS="\${UBSAN_OPTIONS:-}" TMPDIR="$rig" sh -c "\$*"
RSH
    chmod +x "$rig/rsh"
}

rig_hosts()
{
    for host in "$@"; do
        rig_count=$((rig_count + 1))
        ip netns add "$host"
        : >"/run/uts-$host"
        unshare --uts="/run/uts-$host" hostname "$host"
        ip link add name "port-$host" type veth peer name eth0 netns "$host"
        ip link set "port-$host" master switch up
        ip -n "$host" link set lo up
        ip -n "$host" address add "10.77.0.$rig_count/24" dev eth0
        ip -n "$host" link set eth0 up
        echo "10.77.0.$rig_count $host" >>"$rig/hosts"
    done
}

on()
{
    on_host=$1
    shift
    nsenter --net="/run/netns/$on_host" --uts="/run/uts-$on_host" "$@"
}

rig_limit()
{
    tc qdisc replace dev "port-$1" root tbf rate "$2" burst 64kb latency 50ms
    tc -n "$1" qdisc replace dev eth0 root tbf rate "$2" burst 64kb latency 50ms
}

rig_unlimit()
{
    tc qdisc delete dev "port-$1" root
    tc -n "$1" qdisc delete dev eth0 root
}

rig_link()
{
    ip link set "port-$1" "$2"
}

rig_address()
{
    sed -n "s/ $1\$//p" "$rig/hosts"
}

# What one sends to the other goes to a card that nobody has.
rig_apart()
{
    ip -n "$1" neigh replace "$(rig_address "$2")" lladdr 02:00:00:00:00:99 dev eth0 nud permanent
    ip -n "$2" neigh replace "$(rig_address "$1")" lladdr 02:00:00:00:00:99 dev eth0 nud permanent
}

rig_together()
{
    ip -n "$1" neigh delete "$(rig_address "$2")" dev eth0
    ip -n "$2" neigh delete "$(rig_address "$1")" dev eth0
}
