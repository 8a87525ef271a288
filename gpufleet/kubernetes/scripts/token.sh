# token.sh MINUTES: print what a host joins this control plane's cluster with: lines `endpoint`, `version`, `token`
# and `hash`.
export KUBECONFIG=/etc/kubernetes/admin.conf
token=$(kubeadm token create --ttl "$1m" --description "join by gpufleet") || exit 1
server=$(sed -n 's|^ *server: https://||p' "$KUBECONFIG" | head -n 1)
version=$(kubelet --version | sed 's/.* v//')
printf 'endpoint %s\nversion %s\ntoken %s\nhash sha256:%s\n' "$server" "$version" "$token" "$(identity)"
