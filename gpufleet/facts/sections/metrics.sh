# What DCGM's exporters answer where they listen. Parsed by metrics.py. Only on request.
# An exporter in a container listens in its own network, so it is asked from there.
line /proc/uptime
item=${line%%.*}
have curl && have 'timeout' && for path in $(grep -lsx dcgm-exporter /proc/[0-9]*/comm | head -n 4); do
    path=${path%/comm}
    line "$path/stat"
    set -- ${line##*) }
    case ${20} in '' | *[!0-9]*) continue ;; esac
    age=$((item - ${20} / 100))
    sockets=$(find "$path/fd" -maxdepth 1 -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n' | tr '\n' '|')
    enter=
    [ "$path/ns/net" -ef /proc/self/ns/net ] || enter="nsenter -t ${path##*/} -n"
    for text in $(awk -v "sockets=|$sockets" '$4 == "0A" && index(sockets, "|" $10 "|") { print $2 }' \
        "$path/net/tcp" "$path/net/tcp6"); do
        port=$((0x${text#*:}))
        case $text in
            *[1-9A-F]*:*)
                set -- $(say "$text" | sed 's/^\(..\)\(..\)\(..\)\(..\):.*/0x\4 0x\3 0x\2 0x\1/')
                [ $# = 4 ] || continue
                text=$(printf '%d.%d.%d.%d' "$@")
                ;;
            *) text=127.0.0.1 ;;
        esac
        say "exporter $age $port"
        timeout -k 2 15 $enter curl -gsm 10 --noproxy '*' -w '\ncode %{http_code}\n' \
            "http://$text:$port/metrics" </dev/null | head -c 8388608 | awk '
                /^DCGM_FI_DEV_/ {
                    samples++
                    if (!match($0, /[{,](UUID|uuid)="[^"]*"/)) next
                    gpu = substr($0, RSTART + 7, RLENGTH - 8)
                    if (!known[gpu]++ && gpus++ < 256) print "gpu " gpu
                }
                /^code [0-9][0-9][0-9]$/ { code = $2 }
                END { print "answer " code + 0 " " samples + 0 }'
    done
done
