# The first GPU has fallen off the bus: XID 79, for the exporter of a cluster and in the kernel's log.
write_log() { # a file instead of the machine's log; one line, because dmesg reads no more of a file
    rm -f /dev/kmsg
    printf '4,1,%s000000,-;NVRM: %s\n' "$(cut -d. -f1 /proc/uptime)" "$1" >/dev/kmsg
}
on() {
    class=$(grep -l '^0x0302' /run/sim/pci/*/class | head -1)
    slot=${class%/class}
    slot=${slot##*/}
    mkdir -p /run/sim/gpu
    echo 79 >"/run/sim/gpu/$slot.xid"
    write_log "Xid (PCI:${slot%.0}): 79, GPU has fallen off the bus."
}
off() {
    rm -f /run/sim/gpu/*.xid
    write_log "loading NVIDIA UNIX x86_64 Kernel Module"
}
