# The cgroup driver and the runtime of the running kubelet. Parsed by answers.py. Only on request.
# Any pod may name its process so: only one in the host's own mount namespace counts, and no program of a
# process is run. Options count first; of the files that they name, the last one that has the key.
path=
for text in $(grep -lsx kubelet /proc/[0-9]*/comm); do
    [ "${text%/comm}/ns/mnt" -ef /proc/self/ns/mnt ] && path=${text%/comm} && break
done
if [ "$path" ]; then
    say "version $(have kubelet && timeout -k 2 5 kubelet --version </dev/null | head -n 1)"
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
