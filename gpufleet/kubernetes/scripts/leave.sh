# leave.sh MESSAGE LEAVING: fail unless most of the other control planes are Ready: they have to do without this one.
# LEAVING becomes this host's access to the cluster, for what is left to do when it is no node any more.
message=$1 leaving=$2
export KUBECONFIG=/etc/kubernetes/admin.conf
[ -e "$KUBECONFIG" ] || exit 0 # it has left, or never became one
name=$(node_name)
line='{range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}'
seen=$(kubectl get nodes -l node-role.kubernetes.io/control-plane -o "jsonpath=$line" 2>&1) || fail "$message" "$seen"
seen=$(printf '%s\n' "$seen" | grep -v "^$name ")
others=$(printf '%s\n' "$seen" | grep -c .)
ready=$(printf '%s\n' "$seen" | grep -c ' True$')
needed=$((others / 2 + 1))
[ "$others" = 0 ] || [ "$ready" -ge "$needed" ] ||
    fail "$message" "$ready of $others other control planes are Ready, $needed have to be"
(umask 077 && cat "$KUBECONFIG" >"$leaving")
