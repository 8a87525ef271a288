# k3s_reset.sh MESSAGE FOREIGN BEGUN JOINED NETWORK LEAVES [STATE]...: remove k3s with its pods, data, network links and rules.
# LEAVES: "leaves", or "" where the host joins again: its server knows the host's node by the password that k3s made here, and
# refuses another under the same name. STATE: further files that say what was done, and uploads. What k3s' own k3s-killall.sh and
# k3s-uninstall.sh remove, by https://github.com/k3s-io/k3s/blob/master/install.sh, without rules and links of others.
message=$1 foreign=$2 begun=$3 joined=$4 network=$5 leaves=$6
shift 6
# gone PATH: remove it; a folder that is a disk's own is emptied
gone() {
    out=$(rm -rf "$1" 2>&1) && return 0
    mountpoint -q "$1" && [ -z "$(ls -A "$1" 2>&1)" ]
}
ours=$(cat "$begun" "$joined" 2>/dev/null | head -n 1)
now=$(cluster)
if [ -n "$ours" ] && [ -n "$now" ] && [ "$ours" != "$now" ]; then fail "$foreign"; fi
printf '%s\n' "$now" >"$begun"
rm -rf "$joined" "$@"
for unit in k3s.service k3s-agent.service; do
    [ -e "/etc/systemd/system/$unit" ] || continue
    out=$(systemctl disable -q --now "$unit" 2>&1) || fail "$message" "$out"
    rm -f "/etc/systemd/system/$unit"
done
systemctl daemon-reload
has ps || fail "$message" 'ps is not installed, and the pods of k3s are found by it'
# pods outlive the unit: the processes of its shims, and all below them
out=$(ps -e -o pid= -o ppid= -o args= | awk -v own="^$data/data/[^/]*/bin/containerd-shim" '
    { parent[$1] = $2; if ($3 ~ own) pod[$1] }
    END {
        do {
            more = 0
            for (pid in parent) if (!(pid in pod) && parent[pid] in pod) { pod[pid]; more = 1 }
        } while (more)
        for (pid in pod) print pid
    }')
[ -z "$out" ] || kill -KILL $out 2>/dev/null
mounted() { awk '$2 ~ "^(/run/k3s|/var/lib/kubelet/(pods|plugins)|/run/netns/cni-)" { print $2 }' /proc/self/mounts; }
mounted | sort -r | while read -r path; do umount -f "$path" 2>/dev/null || umount -l "$path"; done
left=$(mounted; awk -v data="$data/" 'index($2, data) == 1 || $2 ~ "^/var/lib/kubelet/" { print $2 }' /proc/self/mounts)
[ -z "$left" ] || fail "$message" 'still mounted:' "$left"
for path in /run/netns/cni-*; do [ -e "$path" ] && rm -f "$path"; done
# k3s has its configuration of CNI among its data: what is in the usual folder is another program's
others=$(for path in /etc/cni/net.d/*; do [ -e "$path" ] && printf '%s\n' "$path"; done)
chains='KUBE'
[ -n "$others" ] || chains='KUBE|CNI'
if [ "$network" = flannel ]; then
    chains="$chains|FLANNEL"
    for link in cni0 flannel.1 flannel-v6.1 flannel-wg flannel-wg-v6 kube-ipvs0; do
        [ -e "/sys/class/net/$link" ] && ip link delete "$link"
    done
    rm -rf /run/flannel
fi
[ -n "$others" ] || rm -rf /var/lib/cni
[ -z "$leaves" ] || gone /etc/rancher/node || fail "$message" "$out"
for path in "$settings" /run/k3s "$data" /var/lib/kubelet /var/log/pods/* /var/log/containers/* /usr/local/bin/k3s; do
    gone "$path" || fail "$message" "$out"
done
rmdir /etc/rancher /var/lib/rancher 2>/dev/null
drop_rules "$message" "($chains)-"
rm -f "$begun"
