# unload.sh MESSAGE MODULE...: stop the services that hold the GPUs and unload the nvidia modules.
# When a module stays, everything that was stopped is started again and nothing has changed; that is
# an error with MESSAGE, and none without (a reboot will do it).
message=$1; shift
[ -d /sys/module/nvidia ] || exit 0
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
        [ -n "$message" ] || exit 0
        fail "$message" "$out" "$(has fuser && fuser -v /dev/nvidia* 2>&1 | head -n 8)"
    fi
done
exit 0
