#!/bin/sh
# mig_parted.sh MACHINE PCI PROGRAMS CASES: give a machine the layout of each folder of CASES, by gpufleet's program and by
# nvidia-mig-parted, and let each judge what the other made. Needs mount and PID namespaces of its own, as root; leaves
# nothing. MACHINE: the sandbox's simulated machine; PCI: its bus, a folder per device; PROGRAMS: for /usr/local/sbin.
# A case has `wanted` (gpufleet's) and `equal.yaml` (mig-parted's), and gets a file with output and status per step.
set -eu
machine=$1 pci=$2 programs=$3 cases=$4 version=580.159.03

make_machine() {
    mount -t tmpfs tmpfs /run
    mkdir -p /run/upper /run/work /run/sim/driver /run/machine /run/pci
    cp -r "$machine/." /run/machine
    cp -r "$pci/." /run/pci
    mount -t overlay overlay -o lowerdir=/usr,upperdir=/run/upper,workdir=/run/work /usr
    mkdir -p /usr/lib/sim
    mount --bind /run/machine /usr/lib/sim
    cp "$programs"/* /usr/local/sbin
    cp /run/machine/libnvidia-ml.so.1 "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.$version"
    ln -sf "libnvidia-ml.so.$version" /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
    for folder in /dev /var/lib /sys/module /sys/bus/pci/drivers; do mount -t tmpfs tmpfs $folder; done
    mknod -m 666 /dev/null c 1 3
    mount --bind /run/pci /sys/bus/pci/devices
    mount --bind /run/sim/driver /proc/driver
    echo 0 >/run/sim/secure-boot
    : >/run/sim/modules
    bash /usr/lib/sim/kmod insert nvidia "$version" "$(uname -r)" '' 'Dual MIT/GPL' signed
}

parted() { # mig-parted reads /proc/modules, which a kernel without modules does not have
    unshare --mount sh -c '
        if [ -e /proc/modules ]; then mount --bind /run/sim/modules /proc/modules
        else
            mkdir -p /run/proc
            mount --rbind /proc /run/proc
            mount -t tmpfs tmpfs /proc
            for entry in /run/proc/*; do ln -s "$entry" /proc; done
            ln -s /run/sim/modules /proc/modules
        fi
        exec nvidia-mig-parted "$@"' sh "$@"
}
step() { # NAME COMMAND...
    file=$case/$1
    shift
    "$@" >"$file" 2>&1 && status=0 || status=$?
    echo "status $status" >>"$file"
}

make_machine
for case in "$cases"/*; do
    step made gpufleet-gpus "$case/wanted"
    step asserted parted assert -f "$case/equal.yaml"
    step other parted assert -f "$case/other.yaml"
    step off parted apply -f "$cases/../off.yaml"
    step applied parted apply -f "$case/equal.yaml"
    step adopted gpufleet-gpus "$case/wanted"
done
