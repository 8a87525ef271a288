# exporter_start.sh MESSAGE URL GPUS SECONDS UNIT...: restart the units, in this order, and wait until
# URL has metrics of as many GPUs.
message=$1 url=$2 gpus=$3 seconds=$4; shift 4
metrics() { # anyone can listen on the port of an exporter that is down, and answer without an end
    if has curl; then curl -fsS --noproxy '*' --max-time 5 "$url"
    elif has wget; then timeout -k 2 8 wget -q --no-proxy -T 5 -t 1 -O - "$url"
    else
        file=$(mktemp) || exit 1
        bounded 16777216 8 /usr/lib/apt/apt-helper -o Acquire::http::Proxy=DIRECT -o Acquire::http::Timeout=5 \
            download-file "$url" "$file" >&2
        cat "$file"
        rm -f "$file"
    fi 2>/dev/null | head -c 16777216
}
seen() { metrics | sed -n 's/^DCGM_[A-Z0-9_]*{.*UUID="\([^"]*\)".*/\1/p' | sort -u | wc -l; }
for unit; do
    read_units "$unit"
    enable_units "$unit" 2>/dev/null
    systemctl reset-failed "$unit" 2>/dev/null
    systemctl restart "$unit"
done
until=$(($(date +%s) + seconds))
while [ "$(seen)" -lt "$gpus" ]; do
    # after one crash DCGM may not be ready yet; after three there is nothing to wait for
    crashes=$(systemctl show -p NRestarts "$unit")
    if [ "$(date +%s)" -ge "$until" ] || [ "${crashes#NRestarts=}" -ge 2 ] 2>/dev/null; then
        fail "$message" "$(for unit; do
            printf '%s is %s:\n' "$unit" "$(systemctl is-active "$unit")"
            journalctl -u "$unit" -n 8 --no-pager -o cat 2>&1
        done)"
    fi
    sleep 0.3
done
exit 0
