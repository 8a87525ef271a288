# What kubeadm requires, and what there is of a cluster. Parsed by kubernetes.py.
# What kubeadm asks before it starts; no process is needed for it.
line /proc/sys/kernel/hostname
say "name $line"
text=1
[ -e /sys/fs/cgroup/cgroup.controllers ] && text=2
say "cgroups $text"
count /sys/devices/system/cpu/cpu[0-9]*
say "processors $total"
while read -r key text; do
    [ "$key" = MemTotal: ] && say "memory ${text%% *}" && break
done </proc/meminfo
while read -r key text; do
    [ "$key" = Filename ] || say "swap $key"
done </proc/swaps
for path in /sys/class/net/*/device; do
    # on USB: many BMCs give theirs one address in all servers, be:3a:f2:b6:05:9f
    # https://www.thomas-krenn.com/en/wiki/Virtual_network_interface_enx_of_Supermicro_Motherboards (read 2026-11-28)
    [ -e "$path/bInterfaceNumber" ] && continue
    [ -e "$path" ] && line "${path%/device}/address" && say "mac $line"
done
# the API server's address, as the node reaches it; then, on a control plane, as its users do
for path in /etc/kubernetes/kubelet.conf /etc/kubernetes/admin.conf; do
    [ -r "$path" ] || continue
    while read -r key text; do
        [ "$key" = server: ] && say "server $text" && break
    done <"$path"
done
path=/etc/kubernetes/manifests/kube-apiserver.yaml
if [ -r "$path" ]; then
    while read -r key text; do
        [ "${key##*/}" = kube-apiserver.advertise-address.endpoint: ] && say "advertised $text" && break
    done <"$path"
fi
for path in /etc/kubernetes/*.conf /etc/kubernetes/manifests/* /etc/kubernetes/pki/* \
    /var/lib/kubelet/config* /var/lib/etcd/member /etc/cni/net.d/* /var/lib/gpufleet/kubernetes.* \
    /sys/class/net/cni0 /sys/class/net/flannel.1 /var/lib/gpufleet/containerd.* \
    /etc/rancher/*/*.yaml /var/lib/rancher/*/server /var/lib/rancher/*/agent; do
    [ -e "$path" ] && say "path $path"
done
path=/etc/kubernetes/pki/ca.crt
if [ -r "$path" ]; then
    while read -r text; do
        case $text in
            -----BEGIN*) line= ;;
            -----END*) say "authority $line" ;;
            *) line=$line$text ;;
        esac
    done <"$path"
fi
