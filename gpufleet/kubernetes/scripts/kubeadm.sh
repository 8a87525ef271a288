# kubeadm.sh MESSAGE BEGUN JOINED init|join CONFIG IGNORED [DONE]...: run kubeadm with a configuration that is removed
# in any case. The file BEGUN exists until it has succeeded, then JOINED; both name the cluster once it is known.
# DONE: further files that exist then. A Node of this name that an earlier attempt left counts as Ready until the cluster
# misses its kubelet: then join is tried again, for two minutes.
message=$1 begun=$2 joined=$3 verb=$4 config=$5 ignored=$6
shift 6
done=$*
trap 'rm -f "$config"' EXIT
began=$(date +%s)
out=$( (printf '' >"$begun") 2>&1) || fail "$message" "$out" # a full disk
enable_units kubelet
set --
[ "$verb" = init ] && set -- --skip-token-print
[ -n "$ignored" ] && set -- "$@" "--ignore-preflight-errors=$ignored"
left=24 # tries, 5 s apart
until out=$(kubeadm "$verb" --config "$config" "$@" 2>&1 </dev/null); do
    case $out in *'and status "Ready" already exists'*) left=$((left - 1)) ;; *) left=0 ;; esac
    [ "$left" -gt 0 ] || break
    sleep 5
    kubeadm reset -f --cri-socket unix:///run/containerd/containerd.sock >/dev/null 2>&1 </dev/null || left=1
done
if [ "$left" -gt 0 ]; then
    for file in $done; do : >"$file"; done
    identity >"$begun"
    mv "$begun" "$joined"
    exit 0
fi
identity >"$begun"
logs=$(for log in /var/log/pods/kube-system_*/*/*.log; do
    [ -e "$log" ] && printf '%s\n' "$log" && tail -n 2 "$log"
done)
# what kept pods from starting; the last lines of a kubelet that runs are about an API server that does not answer yet
cause='StartContainer|CreatePodSandbox|ErrImage'
# one that crashes at its start is active for a moment, each time systemd starts it again
{ systemctl is-active -q kubelet && sleep 1 && systemctl is-active -q kubelet; } || cause='^[EF][0-9]|err='
kubelet=$(journalctl -u kubelet --since "@$began" --no-pager -o cat 2>/dev/null | grep -E "$cause" | tail -n 1 | cut -c 1-1000)
fail "$message" "$(printf '%s\n' "$out" | grep -viE 'token|certificate.?key|[0-9a-f]{64}' | tail -n 5)" "$kubelet" "$logs"
