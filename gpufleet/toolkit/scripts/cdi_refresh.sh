# cdi_refresh.sh SPEC MESSAGE UNIT...: enable and run the toolkit's units that update the spec.
spec=$1 message=$2; shift 2
for unit; do enable_units "$unit" || fail "$message" "$unit cannot be enabled"; done
for unit; do
    systemctl reset-failed "$unit" 2>/dev/null
    systemctl restart "$unit" || fail "$message" "$(journalctl -u "$unit" -n 5 --no-pager -o cat 2>&1)"
done
[ -s "$spec" ] || fail "$message" "there is no $spec"
exit 0
