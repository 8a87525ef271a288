# apply.sh MESSAGE FILE DONE: apply objects with the control plane's own access; FILE is removed in any case,
# DONE exists once they are there.
trap 'rm -f "$2"' EXIT
out=$(kubectl --kubeconfig /etc/kubernetes/admin.conf apply --server-side --field-manager gpufleet -f "$2" 2>&1) ||
    fail "$1" "$out"
: >"$3"
