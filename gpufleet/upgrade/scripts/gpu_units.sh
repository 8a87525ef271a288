# Shared by the scripts that compare a host before and after a change.
# gpu_units: what uses the GPUs or starts those who do, in the order in which they are started
gpu_units() {
    printf '%s\n' nvidia-persistenced nvidia-fabricmanager nvidia-dcgm dcgm-exporter nvidia-dcgm-exporter \
        gpufleet-dcgm-exporter containerd docker crio kubelet
}
# xids: errors of GPUs in the kernel's log since the boot; "-" where it cannot be read
xids() {
    log=$(dmesg 2>/dev/null) || { echo -; return; }
    printf '%s\n' "$log" | grep -c 'NVRM: Xid'
}
