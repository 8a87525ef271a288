# k3s_token.sh MINUTES [ENDPOINT]: print what an agent joins this server's cluster with: lines `endpoint`, `version`,
# `token` and `hash`. The token names the cluster's certificate authority, and expires.
place=$(server "${2:-}") || exit 1
version=$(k3s --version | sed -n 's/^k3s version \([^ ]*\).*/\1/p')
token=$(k3s token create --ttl "$1m" --description 'join by gpufleet' </dev/null) || exit 1
token=$(printf '%s\n' "$token" | tail -n 1)
printf 'endpoint %s\nversion %s\ntoken %s\nhash %s\n' "$place" "$version" "$token" "$(cluster)"
