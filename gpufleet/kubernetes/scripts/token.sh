# token.sh MINUTES [certificates]: print what a host joins this control plane's cluster with: lines `endpoint`,
# `version`, `token` and `hash`. With `certificates`, those of a control plane are stored in the cluster too,
# encrypted as kubeadm's configuration on standard input says.
export KUBECONFIG=/etc/kubernetes/admin.conf
token=$(kubeadm token create --ttl "$1m" --description "join by gpufleet" </dev/null) || exit 1
server=$(sed -n 's|^ *server: https://||p' "$KUBECONFIG" | head -n 1)
version=$(kubelet --version | sed 's/.* v//')
if [ "${2:-}" = certificates ]; then
    kubeadm init phase upload-certs --upload-certs --skip-certificate-key-print --config /dev/stdin >/dev/null || exit 1
fi
printf 'endpoint %s\nversion %s\ntoken %s\nhash sha256:%s\n' "$server" "$version" "$token" "$(identity)"
