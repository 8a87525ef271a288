# Functions for scripts that end what uses the GPUs, or must not. Each prints one thing per line.

# gpu_processes: process ids that have a device open. The driver's own daemons and gpufleet's exporter
# are services, which unload.sh stops and starts again: they are no work.
gpu_processes() {
    exporter=$(cat /run/gpufleet-dcgm-exporter.cid 2>/dev/null)
    exporter=${exporter:-none} # docker makes the file before it has an id: an empty one is in every line
    find /proc/[0-9]*/fd -maxdepth 1 -lname '/dev/nvidia*' -printf '%h\n' 2>/dev/null | sort -u |
        while IFS=/ read -r _ _ pid _; do
            case $(cat "/proc/$pid/comm" 2>/dev/null) in
                nvidia-persiste | nv-fabricmanage | nv-hostengine | '') ;;
                *) grep -qsE "/(gpufleet|nvidia)-dcgm-exporter\.service|$exporter" "/proc/$pid/cgroup" || echo "$pid" ;;
            esac
        done
}

# gpu_work: the same with names, and the pods that the kubelet has given GPUs.
gpu_work() {
    for pid in $(gpu_processes); do
        name=$(tr -cd '\40-\176' <"/proc/$pid/comm" 2>/dev/null) || continue
        container=$(grep -soE -m 1 '[0-9a-f]{64}' "/proc/$pid/cgroup" | head -n 1 | cut -c 1-12)
        printf '%s (process %s%s)\n' "$name" "$pid" "${container:+ of container $container}"
    done
    groups=-$(find /sys/fs/cgroup -maxdepth 8 -type d -name '*pod*' 2>/dev/null | tr _ -)
    grep -soE '"PodUID":"[^"]*","ContainerName":"[^"]*","ResourceName":"nvidia.com/' \
        /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint | cut -d'"' -f 4 | sort -u |
        while read -r pod; do
            # as in facts/sections/gpu.sh: the checkpoint and this folder outlive a pod, its control group does not
            [ -d "/var/lib/kubelet/pods/$pod" ] || continue
            case $groups in
                *"pod$pod"*) ;;
                *kubepods*) continue ;;
            esac
            printf 'pod %s\n' "$pod"
        done
}

# gpu_containers: those of the work that are in containers, and containers that have GPUs and do not use them now, by
# their bundles, as in facts/sections/gpu.sh. gpufleet's exporter, which it starts again, does not count.
gpu_containers() {
    exporter=$(cat /run/gpufleet-dcgm-exporter.cid 2>/dev/null)
    gpu_work | grep -E '^pod | of container '
    gave='"NVIDIA_VISIBLE_DEVICES=[^"nv].*nvidia-container-[rt]|/nvidia-(cdi-hook|ctk)"'
    grep -lsE "\"[/]dev/nvidia[c0-9]|$gave" \
        /run/containerd/io*/*/*/config.json /run/*/containerd/io*/*/*/config.json \
        /run/*/containerd/*/io*/*/*/config.json \
        /run/containers/storage/overlay-containers/*/userdata/config.json | grep -vF "/${exporter:-none}/" |
        while read -r bundle; do
            [ -r "$bundle" ] || continue
            # CRI-O writes it with spaces
            if ! tr -d '[:space:]' <"$bundle" | grep -qF '[{"allow":true,"access":"rwm"}' ||
                grep -qsE "$gave" "$bundle"; then echo "$bundle"; fi
        done
}

# docker_containers: ids of the containers that docker runs, but for gpufleet's exporter.
docker_containers() {
    exporter=$(cat /run/gpufleet-dcgm-exporter.cid 2>/dev/null) || exporter=none
    for task in /run/containerd/io.containerd.runtime.*/moby/* \
        /run/docker/containerd/daemon/io.containerd.runtime.*/moby/*; do
        if [ -d "$task" ] && [ "${task##*/}" != "$exporter" ]; then
            printf 'container %.12s\n' "${task##*/}"
        fi
    done
}
