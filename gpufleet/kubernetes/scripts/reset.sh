# reset.sh MESSAGE FOREIGN MEMBER BEGUN JOINED NETWORK [STATE]...: kubeadm's reset, and what it leaves: with the network
# flannel its links, addresses and files, chains of rules, logs of pods. Images and settings of the kernel stay, and
# so do rules that are not the cluster's. MEMBER: the message for an etcd member that stays; "": it goes with the
# cluster. STATE: further files that say what was done, and uploads.
message=$1 foreign=$2 member=$3 begun=$4 joined=$5 network=$6
shift 6
ours=$(cat "$begun" "$joined" 2>/dev/null | head -n 1)
now=$(identity)
if [ -n "$ours" ] && [ -n "$now" ] && [ "$ours" != "$now" ]; then fail "$foreign"; fi
printf '%s\n' "$now" >"$begun"
rm -rf "$joined" "$@"
out=$(kubeadm reset -f --cri-socket unix:///run/containerd/containerd.sock 2>&1 </dev/null) || fail "$message" "$out"
stays=$(printf '%s\n' "$out" | grep -F 'Failed to remove etcd member')
if [ -n "$member" ] && [ -n "$stays" ]; then fail "$member" "$stays"; fi
disable_units --now kubelet
mounted=$(awk '$2 ~ "^/var/lib/kubelet/" { print $2 }' /proc/self/mounts)
[ -z "$mounted" ] || fail "$message" "still mounted:" "$mounted"
rm -rf /var/log/pods/* /var/log/containers/* /etc/kubernetes /var/lib/etcd /var/lib/kubelet
kubelet=/etc/systemd/logind.conf.d/99-kubelet.conf # how long a shutdown waits for it
if [ -e "$kubelet" ]; then
    rm -f "$kubelet"
    rmdir "${kubelet%/*}" 2>/dev/null
    systemctl reload-or-restart systemd-logind
fi
chains='(KUBE|FLANNEL)-'
if [ "$network" = flannel ]; then
    rm -f /opt/cni/bin/flannel # of flannel's pod; the package has the others
    rm -rf /etc/cni/net.d/10-flannel.conflist /var/lib/cni/flannel /var/lib/cni/networks/cbr0 /var/lib/cni/results/cbr0-* \
        /run/flannel
    rmdir /var/lib/cni/networks /var/lib/cni/results /var/lib/cni/cache /var/lib/cni 2>/dev/null
    for link in cni0 flannel.1; do
        [ -e "/sys/class/net/$link" ] && ip link delete "$link"
    done
else
    chains='KUBE-'
fi
[ ! -e /sys/class/net/kube-ipvs0 ] || ip link delete kube-ipvs0 # kube-proxy's, with the addresses of all services
# kube-proxy's tables
if has nft; then
    for family in ip ip6; do
        nft list table "$family" kube-proxy >/dev/null 2>&1 || continue
        out=$(nft delete table "$family" kube-proxy 2>&1) || fail "$message" "$out"
    done
fi
# the rules that lead to the cluster's chains, then the chains: rules that another program adds stay
for tool in iptables ip6tables; do
    has "$tool-save" || continue
    out=$("$tool-save" | awk -v own="^$chains" '
        /^\*/ { print; next }
        /^COMMIT/ {
            for (name in found) print "-F " name
            for (name in found) print "-X " name
            print; split("", found); next
        }
        /^:/ { name = substr($1, 2); if (name ~ own) found[name]; next }
        $1 == "-A" && $2 !~ own {
            for (i = 3; i < NF; i++) if ($i == "-j" && $(i + 1) ~ own && i + 1 == NF) {
                print "-D" substr($0, 3); break
            }
        }' | "$tool-restore" --noflush 2>&1) || fail "$message" "$out"
done
rm -f "$begun"
