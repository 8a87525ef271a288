# ready.sh MESSAGE SECONDS NAMESPACE DONE: wait until this host's node is Ready and its pods of NAMESPACE, the
# network between pods, are: a node is Ready before its network runs. By the kubelet's own access.
# DONE exists afterwards.
message=$1 seconds=$2 namespace=$3 done=$4
export KUBECONFIG=/etc/kubernetes/kubelet.conf
name=$(node_name)
node='{range .status.conditions[?(@.type=="Ready")]}{.status} {.message}{end}'
pods='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {.metadata.name}{"\n"}{end}'
waits='{.state.waiting.message}{"\n"}'
reasons="{range .items[*].status.initContainerStatuses[*]}$waits{end}{range .items[*].status.containerStatuses[*]}$waits{end}"
# ask WORD...: what the API server answers, within 10 s: it may be gone
ask() { kubectl --request-timeout=10s "$@" 2>&1; }
# uptime: seconds, also where the clock is set meanwhile
uptime() {
    read -r now rest </proc/uptime
    now=${now%%.*}
}
ready() {
    seen=$(ask get node "$name" -o "jsonpath=$node")
    [ "${seen%% *}" = True ] || return 1
    seen=$(ask -n "$namespace" get pods --field-selector "spec.nodeName=$name" -o "jsonpath=$pods")
    [ -n "$seen" ] || seen="no pod of $namespace runs on $name"
    ! printf '%s\n' "$seen" | grep -qv '^True '
}
uptime
end=$((now + seconds))
until ready; do
    uptime
    if [ "$now" -ge "$end" ]; then
        why=$(ask get pods -A --field-selector "spec.nodeName=$name" -o "jsonpath=$reasons" | sort -u | head -n 5)
        # a pod that cannot begin, as without the image of its sandbox, waits without a message
        log=$(journalctl -u kubelet --no-pager -o cat 2>/dev/null | grep 'CreatePodSandbox for pod failed' |
            tail -n 1 | cut -c 1-1000)
        fail "$message" "$seen" "$why" "$log"
    fi
    sleep 1
done
: >"$done"
