# shellcheck shell=sh
# shellcheck disable=SC2154 # rig: lib_netns.sh
# Real sshd on the hosts of lib_netns.sh, with keys of their own.
#
#   rig_ssh a b c           starts them; afterwards `ssh HOST COMMAND` works on "login" and on every host, without asking
#
# In this test's mount namespace /etc/ssh is ours; the user's own files are not touched.

rig_ssh()
{
    rig_need ssh sshd ssh-keygen
    [ -d /etc/ssh ] || skip "there is no /etc/ssh to put this test's own in place of"
    [ "$(cat /proc/self/setgroups 2>/dev/null)" != deny ] || skip "sshd needs to be root"
    mkdir -m 755 "$rig/ssh" /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f "$rig/ssh/host"
    ssh-keygen -q -t ed25519 -N '' -f "$rig/ssh/user"
    cp "$rig/ssh/user.pub" "$rig/ssh/authorized"
    : >"$rig/ssh/known"
    cat >"$rig/ssh/sshd_config" <<CONF
HostKey /etc/ssh/host
AuthorizedKeysFile /etc/ssh/authorized
PidFile none
PermitRootLogin yes
PasswordAuthentication no
UsePAM no
StrictModes no
CONF
    cat >"$rig/ssh/ssh_config" <<CONF
IdentityFile /etc/ssh/user
IdentitiesOnly yes
GlobalKnownHostsFile /etc/ssh/known
UserKnownHostsFile none
CONF
    for host in "$@"; do
        echo "$host $(cat "$rig/ssh/host.pub")" >>"$rig/ssh/known"
    done
    mount --bind "$rig/ssh" /etc/ssh
    for host in "$@"; do
        on "$host" "$(command -v sshd)" -D -e -f /etc/ssh/sshd_config >"$rig/sshd-$host.log" 2>&1 &
        rig_until 20 ssh -o BatchMode=yes "$host" true || fail "sshd on $host does not let us in"
    done
}
