# Container runtimes and their containers; adds their files to $configs. Parsed by services.py.
# Packages say their version; what lies in /usr/local came without one.
for path in dockerd containerd crio; do
    have "$path" && say "command $path"
    [ -x "/usr/local/bin/$path" ] && say "version $path $("/usr/local/bin/$path" --version)"
done
for path in /run/user/[1-9]*/docker.sock; do [ -e "$path" ] && say "rootless docker" && break; done
have runc || have crun || say "without runc"
count /run/containerd/io.containerd.runtime.*/moby/*
moby=$total
count /run/docker/containerd/daemon/io.containerd.runtime.*/moby/*
moby=$((moby + total))
# The exporter that gpufleet runs in docker is not GPU work.
line /run/gpufleet-dcgm-exporter.cid
[ "$line" ] && for path in /run/containerd/io.containerd.runtime.*/moby/"$line" \
    /run/docker/containerd/daemon/io.containerd.runtime.*/moby/"$line"; do
    [ -e "$path" ] && moby=$((moby - 1))
done
count /run/containerd/io.containerd.runtime.*/k8s.io/*
cri=$total
count /run/containerd/io.containerd.runtime.*/default/*
cri=$((cri + total))
count /run/k3s/containerd/io.containerd.runtime.*/k8s.io/*
say "containers docker $moby"
say "containers containerd $cri"
say "containers k3s $total"
count /run/containers/storage/overlay-containers/*/userdata
say "containers crio $total"
for path in /var/lib/rancher/k3s/data/current/bin/containerd /var/lib/rancher/rke2/bin/containerd \
    /var/lib/rancher/*/data/*/bin/containerd; do
    [ -x "$path" ] && say "version rancher $("$path" --version)" && break
done
# A runtime's own --config, --config-file or -c: the word after it, or the rest of the word.
next=
path=
set -f
for text in $units; do
    case $path/$text in
        */--config=* | */--config-file=*) configs="$configs$nl${text#*=}" ;;
        */--config | */--config-file | *containerd/-c | *crio/-c)
            next=1
            continue
            ;;
        *//*) [ "$next" ] && configs="$configs$nl$text" ;;
    esac
    next=
    path=$text
done
set +f

# Files that hold what an earlier run wrote: the record has each on a line of its own.
for path in /var/lib/gpufleet/provenance.json /var/lib/gpufleet/runtimes/*.json; do
    while read -r key text; do
        case $key$text in '"config":"/'*) ;; *) continue ;; esac
        text=${text#\"}
        text=${text%,}
        configs="$configs$nl${text%\"}"
    done <"$path"
done
