# withdraw.sh: remove the certificates of control planes from the cluster, and what would make them expire.
export KUBECONFIG=/etc/kubernetes/admin.conf
name='jsonpath={.metadata.ownerReferences[0].name}'
owner=$(kubectl -n kube-system get secret kubeadm-certs --ignore-not-found -o "$name") || exit 1
kubectl -n kube-system delete secret kubeadm-certs ${owner:+"$owner"} --ignore-not-found --wait=false >/dev/null
