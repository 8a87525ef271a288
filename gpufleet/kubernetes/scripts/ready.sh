# ready.sh MESSAGE SECONDS: wait until this host's node is Ready, by its kubelet's own access.
message=$1 left=$2
export KUBECONFIG=/etc/kubernetes/kubelet.conf
name=$(hostname | tr '[:upper:]' '[:lower:]')
form='{range .status.conditions[?(@.type=="Ready")]}{.status} {.message}{end}'
while seen=$(kubectl get node "$name" -o "jsonpath=$form" 2>&1); [ "${seen%% *}" != True ]; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || fail "$message" "$seen"
    sleep 1
done
