# k3s_restart.sh MESSAGE UNIT SECONDS: restart k3s on a node, which goes on being one whatever happens.
message=$1 unit=$2 limit=$3
systemctl daemon-reload
out=$(systemctl --no-block restart "$unit" 2>&1) || fail "$message" "$out"
seconds
end=$((now + limit))
until systemctl is-active -q "$unit"; do
    seconds
    [ "$now" -lt "$end" ] || fail "$message" "$(last_lines "$unit")"
    sleep 1
done
