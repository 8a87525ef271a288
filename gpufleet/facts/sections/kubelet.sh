# The cgroup driver and the runtime of the running kubelet. Parsed by answers.py. Only on request.
# Its options first; files that it names count less, and of them the last one that has the key.
path=$(grep -lsx kubelet /proc/[0-9]*/comm | head -n 1)
path=${path%/comm}
if [ "$path" ]; then
    say "version $(timeout -k 2 5 "$path/exe" --version </dev/null | head -n 1)"
    files=
    item=
    next=
    IFS=$nl
    set -f
    for text in $(tr '\0' '\n' <"$path/cmdline"); do
        case $next$text in
            --config | --config-dir | --cgroup-driver | --container-runtime-endpoint)
                next=$text=
                continue
                ;;
        esac
        text=$next$text
        next=
        case $text in
            --config=*) files=${text#*=} ;;
            --config-dir=*) item=${text#*=} ;;
            --cgroup-driver=*) say "option cgroupDriver ${text#*=}" ;;
            --container-runtime-endpoint=*) say "option containerRuntimeEndpoint ${text#*=}" ;;
        esac
    done
    set +f
    for text in "$files" "${item:-$files}"/*.conf; do
        [ -r "$text" ] && sed -n 's/^[ {]*"*\(cgroupDriver\|containerRuntimeEndpoint\)"*: *"*\([^", ]*\).*/file \1 \2/p' "$text"
    done
    IFS=$blank
fi
