# delete_node.sh MESSAGE SECONDS LEAVING: delete this host's Node with the access in LEAVING, which is removed then. The
# address of the cluster may still lead here for a while.
message=$1 left=$2
[ -e "$3" ] || exit 0
name=$(node_name)
until said=$(kubectl --kubeconfig "$3" --request-timeout 10s delete node "$name" --ignore-not-found 2>&1 </dev/null); do
    left=$((left - 1))
    [ "$left" -gt 0 ] || fail "$message" "$said"
    sleep 1
done
rm -f "$3"
