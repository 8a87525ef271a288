# ready.sh MESSAGE SECONDS NAMESPACE DONE: wait until this host's node is Ready and its pods of NAMESPACE, the
# network between pods, are: a node is Ready before its network runs. By the kubelet's own access.
# DONE exists afterwards.
message=$1 left=$2 namespace=$3 done=$4
export KUBECONFIG=/etc/kubernetes/kubelet.conf
name=$(hostname | tr '[:upper:]' '[:lower:]')
node='{range .status.conditions[?(@.type=="Ready")]}{.status} {.message}{end}'
pods='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {.metadata.name}{"\n"}{end}'
ready() {
    seen=$(kubectl get node "$name" -o "jsonpath=$node" 2>&1)
    [ "${seen%% *}" = True ] || return 1
    seen=$(kubectl -n "$namespace" get pods --field-selector "spec.nodeName=$name" -o "jsonpath=$pods" 2>&1)
    [ -n "$seen" ] || seen="no pod of $namespace runs on $name"
    ! printf '%s\n' "$seen" | grep -qv '^True '
}
until ready; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || fail "$message" "$seen"
    sleep 1
done
: >"$done"
