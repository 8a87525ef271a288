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
# active_units: those that run, a line each
active_units() {
    for unit in $(gpu_units); do
        if systemctl is-active -q "$unit"; then printf 'unit %s\n' "$unit"; fi
    done
}
boot_id() { cat /proc/sys/kernel/random/boot_id; }
# note_xids FOLDER: the errors before an attempt, which say nothing about it, and the boot whose log has them
note_xids() {
    [ -e "$1/health" ] || return 0
    { grep -Ev '^(xids|boot) ' "$1/health"; printf 'xids %s\nboot %s\n' "$(xids)" "$(boot_id)"; } >"$1/health.new" &&
        mv "$1/health.new" "$1/health" || exit 1
}
# note_once FOLDER WORD: note_xids, but not again in an attempt of the same word that goes on after a kill
note_once() {
    if [ "$(cat "$1/noted" 2>/dev/null)" = "$2" ]; then return 0; fi
    note_xids "$1"
    printf '%s\n' "$2" >"$1/noted" || exit 1
}
