# Rules of the packet filter that a cluster leaves.

# drop_rules MESSAGE CHAINS: remove kube-proxy's tables, and the chains whose names begin with the regular expression,
# with what leads to them. Other rules stay.
drop_rules() {
    # kube-proxy's tables
    if has nft; then
        for family in ip ip6; do
            nft list table "$family" kube-proxy >/dev/null 2>&1 || continue
            out=$(nft delete table "$family" kube-proxy 2>&1) || fail "$1" "$out"
        done
    fi
    # the rules that lead to the cluster's chains, then the chains: rules that others add meanwhile stay
    for tool in iptables ip6tables; do
        has "$tool-save" || continue
        out=$("$tool-save" | awk -v own="^$2" '
            /^\*/ { print; next }
            /^COMMIT/ {
                for (name in found) print "-F " name
                for (name in found) print "-X " name
                print; split("", found); next
            }
            /^:/ { name = substr($1, 2); if (name ~ own) found[name]; next }
            $1 == "-A" && $2 !~ own {
                for (i = 3; i < NF; i++) if ($i == "-j" && $(i + 1) ~ own && i + 1 == NF) {
                    print "-D" substr($0, 3); break
                }
            }' | "$tool-restore" --noflush 2>&1) || fail "$1" "$out"
    done
}
