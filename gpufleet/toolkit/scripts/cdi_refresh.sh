# cdi_refresh.sh SPEC UNIT...: enable and run the toolkit's units that update the spec.
spec=$1; shift
read_units "$@"
for unit; do
    out=$(enable_units "$unit" 2>&1) || { extra toolkit_cdi "$unit" "$out"; exit 0; }
done
for unit; do
    systemctl reset-failed "$unit" 2>/dev/null
    systemctl restart "$unit" && continue
    extra toolkit_cdi "$unit" "$(journalctl -u "$unit" -n 5 --no-pager -o cat 2>&1)"
    exit 0
done
[ -s "$spec" ] || extra toolkit_cdi "$spec" 'it was not written'
