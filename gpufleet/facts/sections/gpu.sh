# Work on the GPUs; $holders, $sockets, $owners and $base for the next section. Parsed by services.py.
# One walk over all open files serves two questions: who holds a GPU, and whose are the sockets that
# listen on the ports in question. The kernel lists the listening ones before all others.
sockets=
[ "$ports" ] && sockets=$(awk -v "ports=|$ports|" 'BEGIN {
for (i = 1; i < ARGC; i++) {
getline row <ARGV[i]
while ((getline row <ARGV[i]) > 0) {
split(row, word, " ")
if (word[4] != "0A") break
port = word[2]
sub(/.*:/, "", port)
if (index(ports, "|" port "|") && listeners++ < 100) print word[2], word[10]
}
}
}' /proc/net/tcp /proc/net/tcp6)
set --
[ -c /dev/nvidiactl ] && set -- -lname '/dev/nvidia*'
for text in $sockets; do
    case $text in *:*) ;; *) set -- "$@" ${1:+-o} -lname "socket:\\[$text\\]" ;; esac
done
# Everybody may open a GPU: of each process each device once, and no more than 1000 processes.
held=
[ $# -gt 0 ] && held=$(find /proc/[0-9]*/fd -maxdepth 1 \( "$@" \) ! -lname "*$nl*" \
    -printf '%h %l\n' | awk '$2 ~ /^socket:/ { if (owners++ < 1000) print; next }
!($1 in known) { if (processes++ >= 1000) next; known[$1] }
!seen[$0]++')
holders=
last=
owners=
# A host that is itself a container reports its path in its machine's hierarchy.
group /proc/1/cgroup
base=${group%/init.scope}
base=${base%/}
while read -r path device; do
    path=${path%/fd}
    pid=${path##*/}
    case $device in
        '') ;;
        socket:*)
            device=${device#socket:?}
            owners="$owners$nl$pid ${device%?}"
            ;;
        *)
            line "$path/comm"
            say "process $pid $device $line"
            if [ "$path" != "$last" ]; then
                last=$path
                group "$path/cgroup"
                say "group $pid ${group#"$base"}"
                holders="$holders $path"
                [ -r "$path/cmdline" ] && printf 'command %s %s\n' "$pid" \
                    "$(head -c 1000 "$path/cmdline" | LC_ALL=C tr -c '[:print:]' '[ *]')"
            fi
            ;;
    esac
done <<END
$held
END
# Containers that have GPUs, also while they use none, by the bundles of runc; not gpufleet's exporter. A privileged one,
# such as kube-proxy, lists every device of the host: it has GPUs only if NVIDIA's runtime or CDI gave it some.
line /run/gpufleet-dcgm-exporter.cid
gave='"NVIDIA_VISIBLE_DEVICES=[^"nv].*nvidia-container-[rt]|/nvidia-(cdi-hook|ctk)"'
for text in $(grep -lsE "\"[/]dev/nvidia[c0-9]|$gave" \
    /run/containerd/io*/*/*/config.json /run/*/containerd/io*/*/*/config.json \
    /run/*/containerd/*/io*/*/*/config.json \
    /run/containers/storage/overlay-containers/*/userdata/config.json); do
    case $text in */"$line"/*) continue ;; esac
    [ -r "$text" ] || continue
    # CRI-O writes it with spaces
    if ! tr -d '[:space:]' <"$text" | grep -qF '[{"allow":true,"access":"rwm"}' || grep -qsE "$gave" "$text"; then
        say "given $text"
    fi
done
path=/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint
groups=
IFS=$nl
[ -r "$path" ] && for text in $(grep -oE \
    '"PodUID":"[^"]*","ContainerName":"[^"]*","ResourceName":"nvidia.com/' "$path"); do
    text=${text#*:\"}
    text=${text%%\"*}
    # The checkpoint keeps pods that are gone until the next pod is admitted.
    [ -d "/var/lib/kubelet/pods/$text" ] || continue
    # A pod that ended keeps its folder until its object is deleted; its control group is removed.
    [ "$groups" ] || groups=-$(find /sys/fs/cgroup -maxdepth 8 -type d -name '*pod*' | tr _ -)
    case $groups in
        *"pod$text"*) ;;
        *kubepods*) continue ;;
    esac
    say "pod $text"
done
IFS=$blank
