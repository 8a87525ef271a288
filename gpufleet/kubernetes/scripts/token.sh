# token.sh MINUTES: print what a host joins this control plane's cluster with: lines `endpoint`, `token`, `hash`.
export KUBECONFIG=/etc/kubernetes/admin.conf
token=$(kubeadm token create --ttl "$1m" --description "join by gpufleet") || exit 1
hash=$(openssl x509 -pubkey -in /etc/kubernetes/pki/ca.crt | openssl pkey -pubin -outform der | sha256sum) || exit 1
server=$(sed -n 's|^ *server: https://||p' "$KUBECONFIG" | head -n 1)
printf 'endpoint %s\ntoken %s\nhash sha256:%s\n' "$server" "$token" "${hash%% *}"
