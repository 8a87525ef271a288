# k3s_start.sh MESSAGE OTHER BEGUN JOINED UNIT VERSION SECONDS: start k3s, which becomes a node. OTHER: the message for a
# program of another version. BEGUN exists until it has certificates of its cluster, then JOINED; both name the cluster.
message=$1 other=$2 begun=$3 joined=$4 unit=$5 version=$6 limit=$7
said=$(k3s --version 2>&1)
case "$said" in "k3s version $version "* | "k3s version $version") ;; *) fail "$other" "$said" ;; esac
systemctl daemon-reload
out=$(systemctl enable -q "$unit" 2>&1) || fail "$message" "$out"
out=$(systemctl --no-block restart "$unit" 2>&1) || fail "$message" "$out"
seconds
end=$((now + limit))
# type=notify on a server: it is active once its API server is
until systemctl is-active -q "$unit" && [ -s "$data/agent/client-kubelet.crt" ]; do
    seconds
    if [ "$now" -ge "$end" ]; then
        cluster >"$begun"
        fail "$message" "$(last_lines "$unit")"
    fi
    sleep 1
done
cluster >"$begun"
mv "$begun" "$joined"
