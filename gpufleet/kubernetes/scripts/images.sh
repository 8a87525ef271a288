# images.sh: what containerd has for Kubernetes: `image NAME DIGEST`, `blob DIGEST`.
ctr -n k8s.io images ls 2>/dev/null | awk 'NR > 1 { print "image", $1, $3 }'
ctr -n k8s.io content ls -q 2>/dev/null | sed 's/^/blob /'
exit 0
