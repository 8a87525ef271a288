# services.sh MESSAGE UNIT...: enable and start each unit; MESSAGE has UNIT where its name goes. GPUs work without the
# persistence daemon, and not without the fabric manager of a host with an NVSwitch.
message=$1; shift
for unit; do
    # the command that systemd would use without gpufleet's file: the last one, also of a user's drop-in
    packaged=$(systemctl cat "$unit" 2>/dev/null | awk '/^# \// { ours = /\/gpufleet\.conf$/ }
        !ours && sub(/^ExecStart=/, "") { last = $0 }
        END { if (last ~ /--no-persistence-mode/) print last }')
    if [ -n "$packaged" ]; then
        # Ubuntu's unit disables the one feature that the daemon is for
        folder=/etc/systemd/system/$unit.service.d
        mkdir -p "$folder" || exit 1
        printf '# Written by gpufleet: with persistence mode.\n[Service]\nExecStart=\nExecStart=%s\n' \
            "$(printf '%s' "$packaged" | sed 's/ *--no-persistence-mode/ --persistence-mode/')" >"$folder/gpufleet.conf" || exit 1
        if read_units "$unit"; then
            systemctl stop "$unit"
        else # for the daemon that runs now
            nvidia-smi -pm 1 >/dev/null 2>&1
        fi
    fi
    enable_units "$unit" 2>/dev/null
    systemctl start "$unit"
    if ! systemctl is-active -q "$unit"; then
        log=$(journalctl -u "$unit" -n 5 --no-pager -o cat 2>&1)
        [ "$unit" = nvidia-persistenced ] || fail "$(printf '%s' "$message" | sed "s/UNIT/$unit/g")" "$log"
        extra driver_persistence "$unit" "$log"
    fi
done
exit 0
