# List /dev in a container that asks for all GPUs. $1: docker or containerd. $2: an image on the host that has `ls`; if empty, a
# container of the host's own `ls` and its libraries, removed afterwards. Nothing is pulled, no network is used.
list=ls root='' made=''
PATH=$PATH:/var/lib/rancher/k3s/data/current/bin:/var/lib/rancher/rke2/bin
if [ -S /run/k3s/containerd/containerd.sock ] && [ ! -S /run/containerd/containerd.sock ]; then
    export CONTAINERD_ADDRESS=/run/k3s/containerd/containerd.sock
fi
clean() {
    if [ -n "$made" ]; then docker rmi "$made" >/dev/null; fi
    if [ -n "$root" ]; then rm -r "$root"; fi
}
trap clean EXIT
trap 'exit 129' HUP INT TERM # dash leaves EXIT out otherwise

make_root() { # the least that a container needs to list /dev
    root=$(mktemp -d /var/lib/gpufleet-verify.XXXXXX) || return
    list=$(command -v ls)
    mkdir "$root/dev" "$root/etc" "$root/proc" "$root/sys" "$root/tmp"
    cp -L --parents "$list" $(ldd "$list" | grep -o '/[^ ]*') "$root"
}

list_docker() { # IMAGE
    image=$1
    if [ -z "$image" ]; then
        make_root || return
        image=gpufleet/verify:$$
        tar -C "$root" -c . | docker import - "$image" >/dev/null || return
        made=$image
    fi
    timeout -k 5 60 docker run --rm --network none --runtime nvidia \
        -e NVIDIA_VISIBLE_DEVICES=all --entrypoint "$list" "$image" /dev
}

list_containerd() { # IMAGE
    image=$1
    if [ -z "$image" ]; then make_root || return; fi
    timeout -k 5 60 ctr run --rm --runc-binary "$(command -v nvidia-container-runtime)" \
        --env NVIDIA_VISIBLE_DEVICES=all ${root:+--rootfs} "${image:-$root}" "gpufleet-verify-$$" "$list" /dev
}

section container "list_$1" "$2"
