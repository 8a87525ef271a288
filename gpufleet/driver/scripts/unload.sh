# unload.sh MESSAGE BUSY MODULE...: stop the services that hold the GPUs and unload the nvidia modules.
# If a module stays, everything that was stopped is started again and nothing has changed; that is
# an error if MESSAGE is set (otherwise a reboot follows). With BUSY, work on the GPUs is an error
# with that text, before anything is stopped and again before a module is left to a reboot.
message=$1 busy=$2; shift 2
[ -d /sys/module/nvidia ] || exit 0
spare() {
    [ -n "$busy" ] || return 0
    work=$(gpu_work)
    [ -z "$work" ] || fail "$busy" "$work"
}
spare
stopped=''
for unit in gpufleet-dcgm-exporter nvidia-dcgm-exporter dcgm-exporter nvidia-dcgm nvidia-fabricmanager nvidia-persistenced; do
    if systemctl is-active -q "$unit"; then
        systemctl stop "$unit" || fail "$message" "$unit does not stop"
        stopped="$unit $stopped"
    fi
done
for module in nvidia_drm nvidia_modeset nvidia_uvm nvidia_peermem nvidia; do
    [ -d "/sys/module/$module" ] || continue
    if ! out=$(rmmod "$module" 2>&1) || [ -d "/sys/module/$module" ]; then
        modprobe -a "$@"
        for unit in $stopped; do systemctl start "$unit"; done
        spare
        [ -n "$message" ] || exit 0
        fail "$message" "$(has fuser && fuser -v /dev/nvidia* 2>&1 | head -n 8)" "$out"
    fi
done
exit 0
