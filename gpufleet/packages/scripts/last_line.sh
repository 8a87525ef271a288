# last_line.sh SECONDS: the end of the log that a package manager or DKMS wrote to last, if it did within SECONDS: whole
# lines of printable ASCII, 8 KiB at most, without time and folder. Only reads what the login may read, and a bounded part.
# A line without its beginning or its end could be a part of a password that is not recognized: neither is sent.
since=$(($(date +%s) - $1)) newest='' first=''
for log in /var/log/dpkg.log /var/log/yum.log /var/log/dnf.rpm.log /var/lib/dkms/*/*/build/make.log; do
    [ -f "$log" ] && [ ! -L "$log" ] && [ -r "$log" ] || continue
    [ -n "$newest" ] && [ "$newest" -nt "$log" ] || newest=$log
done
[ -n "$newest" ] && [ "$(stat -c %Y "$newest")" -ge "$since" ] || exit 0
# as many characters as bytes, and one that ends the last line
end=$(tail -c 8192 "$newest" | tr '\r' '\n' | tr -c '[:print:]\n' '\t'; echo .)
[ "${#end}" -le 8192 ] || first=1d
printf '%s\n' "$end" | tr -d '\t' | sed -E -e '$d' -e "$first" -e '
    s|/var/lib/dkms/[^ ]*/build/||g
    s/^[0-9-]{10}[ T][0-9:]{8}[0-9+-]*Z? ([A-Z]+ |status )?//
    s/^[A-Z][a-z]{2} [ 0-9]{2} [0-9:]{8} //
    s/^ +//
    /^$/d'
