# start.sh MESSAGE UNIT: start a unit now and at every boot, also one that read another configuration before.
message=$1 unit=$2
systemctl reset-failed "$unit" 2>/dev/null
out=$(enable_units "$unit" 2>&1 && systemctl restart "$unit" 2>&1) && systemctl is-active -q "$unit" && exit 0
fail "$message" "$(journalctl -u "$unit" -n 8 --no-pager -o cat 2>&1)" "$out"
