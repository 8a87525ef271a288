# reset.sh MESSAGE BEGUN JOINED: kubeadm's reset, and what it leaves: CNI, links, routes and rules of the pods'
# network, logs of pods. Images and settings of the kernel stay.
message=$1 begun=$2 joined=$3
: >"$begun"
rm -f "$joined"
out=$(kubeadm reset -f --cri-socket unix:///run/containerd/containerd.sock 2>&1 </dev/null) || fail "$message" "$out"
systemctl disable -q --now kubelet
rm -f /opt/cni/bin/flannel # of flannel's pod; the package has the others
rm -rf /etc/cni/net.d/10-flannel.conflist /var/lib/cni /run/flannel /var/log/pods/* /var/log/containers/* \
    /etc/kubernetes /var/lib/etcd /var/lib/kubelet
kubelet=/etc/systemd/logind.conf.d/99-kubelet.conf # how long a shutdown waits for it
if [ -e "$kubelet" ]; then
    rm -f "$kubelet"
    rmdir "${kubelet%/*}" 2>/dev/null
    systemctl reload-or-restart systemd-logind
fi
for link in cni0 flannel.1; do
    [ -e "/sys/class/net/$link" ] && ip link delete "$link"
done
for tool in iptables ip6tables; do
    has "$tool-save" || continue
    rules=$("$tool-save" 2>/dev/null | grep -vE 'KUBE-|FLANNEL-|CNI-')
    printf '%s\n' "$rules" | "$tool-restore" 2>/dev/null
done
rm -f "$begun"
