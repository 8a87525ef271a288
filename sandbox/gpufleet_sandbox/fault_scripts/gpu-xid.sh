# The first GPU has fallen off the bus: XID 79, for the exporter of a cluster and in the kernel's log.
write_log() { # a file instead of the machine's log, which a host cannot read
    uptime=$(cut -d. -f1 /proc/uptime)
    rm -f /dev/kmsg
    {
        printf '6,1,%s000000,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n' "$((uptime - 1))"
        [ -z "$1" ] || printf '4,2,%s000000,-;NVRM: Xid (PCI:%s): %s\n' "$uptime" "${1%.0}" "$2"
    } >/dev/kmsg
}
on() {
    class=$(grep -l '^0x0302' /run/sim/pci/*/class | head -1)
    slot=${class%/class}
    slot=${slot##*/}
    mkdir -p /run/sim/gpu
    echo 79 >"/run/sim/gpu/$slot.xid"
    write_log "$slot" "79, GPU has fallen off the bus."
}
off() {
    rm -f /run/sim/gpu/*.xid
    write_log ""
}
