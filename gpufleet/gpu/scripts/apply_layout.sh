# apply_layout.sh MESSAGE PROGRAM UNIT RESETS: give the GPUs their layout and settings, now and at each boot.
# Prints `reboot WHY` for a GPU whose change only a reboot completes. Without PROGRAM: at each boot only.
# RESETS: not "" if idle GPUs may be reset now, whatever their settings say of a boot.
message=$1 program=$2 unit=$3 resets=$4
read_units "$unit"
enable_units "$unit" || exit 1
[ -n "$program" ] || exit 0
out=$("$program" "" "$resets" 2>&1)
status=$?
printf '%s\n' "$out" | grep -E '^(reboot|changed) '
case $status in 0 | 3) ;; *) fail "$message" "$out" ;; esac
systemctl reset-failed "$unit" 2>/dev/null
systemctl restart "$unit" || fail "$message" "$(journalctl -u "$unit" -n 8 --no-pager -o cat 2>&1)"
