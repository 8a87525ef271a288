# activate.sh UNIT VERB PATH BACKUP MESSAGE: reload or restart UNIT. When it does not come up, PATH is
# put back to what BACKUP holds (no BACKUP: taken away), and UNIT is started with that.
unit=$1 verb=$2 path=$3 backup=$4 message=$5
systemctl reset-failed "$unit" 2>/dev/null
if systemctl "$verb" "$unit" && systemctl is-active -q "$unit"; then exit 0; fi
why=$(journalctl -u "$unit" -n 8 --no-pager -o cat 2>&1)
if [ -n "$path" ]; then
    if [ -e "$backup" ]; then cp -p "$backup" "$(readlink -f "$path")"; else rm -f "$path"; fi
    systemctl reset-failed "$unit" 2>/dev/null
    systemctl restart "$unit"
fi
fail "$message" "$unit is now: $(systemctl is-active "$unit")" "$why"
