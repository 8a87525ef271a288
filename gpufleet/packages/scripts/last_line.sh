# last_line.sh SECONDS: the last line of the log that a package manager or DKMS wrote to last, if it did within SECONDS: at
# most 120 printable characters of ASCII, without time and folder. Only reads what the login may read, and a bounded part.
since=$(($(date +%s) - $1)) newest=''
for log in /var/log/dpkg.log /var/log/yum.log /var/log/dnf.rpm.log /var/lib/dkms/*/*/build/make.log; do
    [ -f "$log" ] && [ ! -L "$log" ] && [ -r "$log" ] || continue
    [ -n "$newest" ] && [ "$newest" -nt "$log" ] || newest=$log
done
[ -n "$newest" ] && [ "$(stat -c %Y "$newest")" -ge "$since" ] || exit 0
tail -c 400 "$newest" | tr '\r' '\n' | tr -cd '[:print:]\n' | sed -E '
    s|/var/lib/dkms/[^ ]*/build/||g
    s/^[0-9-]{10}[ T][0-9:]{8}[0-9+-]*Z? ([A-Z]+ |status )?//
    s/^[A-Z][a-z]{2} [ 0-9]{2} [0-9:]{8} //
    s/^ +//
    /^$/d' | tail -n 1 | cut -c 1-120
