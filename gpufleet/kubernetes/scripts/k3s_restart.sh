# k3s_restart.sh MESSAGE UNIT SECONDS NOTE: restart k3s on a node, which goes on being one whatever happens. NOTE is there until it
# runs. An agent's unit is active as soon as the program runs: what answers is its kubelet, which is a part of it, at the
# port of a kubelet's healthz.
message=$1 unit=$2 limit=$3 note=$4
healthy() {
    for loopback in 127.0.0.1 '[::1]'; do # by the family of the node's address
        KUBECONFIG=/dev/null k3s kubectl --server "http://$loopback:10248" --request-timeout=5s get --raw /healthz \
            >/dev/null 2>&1 && return 0
    done
    return 1
}
systemctl daemon-reload
out=$(systemctl stop "$unit" 2>&1) || fail "$message" "$out"
out=$(systemctl --no-block start "$unit" 2>&1) || fail "$message" "$out"
seconds
end=$((now + limit))
until systemctl is-active -q "$unit" && healthy; do
    seconds
    [ "$now" -lt "$end" ] || fail "$message" "$(last_lines "$unit")"
    sleep 1
done
rm -f "$note"
