# Shared by the scripts that ask the API server. The kubelet reaches it without the proxies of a login
# (/etc/environment), which kubeadm would also write into the control plane:
# https://github.com/kubernetes/kubeadm/issues/2145 and https://github.com/kubernetes/kubeadm/issues/666 (read 2026-11-28)
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY

# node_name: the kubelet's name for its node; some images have no program `hostname`:
# https://github.com/rocky-linux/sig-cloud-instance-images/issues/23 (2022-05-30)
node_name() { tr '[:upper:]' '[:lower:]' </proc/sys/kernel/hostname; }

