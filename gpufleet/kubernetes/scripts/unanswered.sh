# unanswered.sh MESSAGE ENDPOINT: fail if a Kubernetes API answers at host:port: none may before a cluster begins.
export KUBECONFIG=/dev/null
said=$(kubectl --server "https://$2" --insecure-skip-tls-verify --request-timeout 5s get --raw /version 2>&1 </dev/null)
case $said in
*'"gitVersion"'* | *Forbidden* | *Unauthorized*) fail "$1" "$said" ;;
esac
