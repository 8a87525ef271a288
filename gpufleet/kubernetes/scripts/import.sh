# import.sh MESSAGE PATH NAME...: import an archive of images into containerd, for Kubernetes; PATH is removed in any
# case. Every NAME must be there afterwards.
message=$1 path=$2; shift 2
trap 'rm -f "$path"' EXIT
out=$(ctr -n k8s.io images import "$path" 2>&1) || fail "$message" "$(printf '%s\n' "$out" | tail -n 5)"
there=$(ctr -n k8s.io images ls -q 2>&1)
missing=$(for name; do
    printf '%s\n' "$there" | grep -qxF -e "$name" || printf '%s\n' "$name"
done)
[ -z "$missing" ] || fail "$message" "not there after the import:" "$missing"
exit 0
