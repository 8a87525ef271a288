# apply.sh MESSAGE FILE: apply objects with the control plane's own access; the file is removed in any case.
trap 'rm -f "$2"' EXIT
out=$(kubectl --kubeconfig /etc/kubernetes/admin.conf apply --server-side --field-manager gpufleet -f "$2" 2>&1) ||
    fail "$1" "$out"
