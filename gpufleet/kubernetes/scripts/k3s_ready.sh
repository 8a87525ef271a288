# k3s_ready.sh MESSAGE SECONDS DONE: wait until this host's node is Ready, by the kubelet's own access; its network is part
# of k3s. DONE exists afterwards.
message=$1 limit=$2 done=$3
name=$(hostname | tr '[:upper:]' '[:lower:]')
line='{range .status.conditions[?(@.type=="Ready")]}{.status} {.message}{end}'
seconds
end=$((now + limit))
until said=$(k3s kubectl --kubeconfig "$data/agent/kubelet.kubeconfig" --request-timeout=10s \
    get node "$name" -o "jsonpath=$line" 2>&1) && [ "${said%% *}" = True ]; do
    seconds
    [ "$now" -lt "$end" ] || fail "$message" "$said"
    sleep 1
done
: >"$done"
