# Configuration files and keyrings, those of $configs among them. Parsed by files.py.
files=
# want PATH...: whole files, also where they do not exist.
want() {
    for item; do
        case "$nl$files" in *"$nl$item$nl"*) continue ;; esac
        if [ -L "$item" ]; then
            say "link $item"
            readlink "$item"
        fi
        if [ -f "$item" ]; then
            files="$files$item$nl"
        elif [ -e "$item" ] || [ -L "$item" ]; then
            say "odd $item"
        else
            case $item in *[*?]*) ;; *) say "absent $item" ;; esac
        fi
    done
}
want /etc/docker/daemon.json /etc/containerd/config.toml /etc/crio/crio.conf \
    /etc/nvidia-container-runtime/config.toml /var/lib/gpufleet/provenance.json \
    /etc/nvidia-container-toolkit/nvidia-cdi-refresh.env \
    /var/lib/gpufleet/written /var/lib/gpufleet/upgrade.json /etc/gpufleet-gpus \
    /var/lib/gpufleet/driver.before.begun /var/lib/gpufleet/toolkit.before.begun \
    /var/lib/gpufleet/runtimes/*.json \
    /etc/containerd/conf.d/*.toml /etc/crio/crio.conf.d/* \
    /etc/apt/auth.conf.d/gpufleet-*.conf /etc/dracut.conf.d/gpufleet-*.conf \
    /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources \
    /etc/yum/pluginconf.d/versionlock.* /etc/dnf/plugins/versionlock.* /etc/dnf/versionlock.toml \
    /etc/dnf/automatic.conf /etc/yum/yum-cron.conf
for path in /var/lib/rancher/k3s /var/lib/rancher/rke2; do
    path=$path/agent/etc/containerd
    [ -d "$path" ] && want "$path"/config*.toml "$path"/config*.tmpl "$path"/config*.toml.d/*
done
want /etc/dcgm-exporter/gpufleet-counters.csv /run/gpufleet-dcgm-exporter.cid
for path in docker containerd crio nvidia-persistenced nvidia-dcgm-exporter \
    gpufleet-dcgm-exporter; do
    want /etc/systemd/system/$path.service.d/*.conf
    [ -e /etc/systemd/system/$path.service ] && want /etc/systemd/system/$path.service
done
IFS=$nl
set -f
want $configs
set +f
want /usr/share/keyrings/*cuda* /usr/share/keyrings/*nvidia* /usr/share/keyrings/*gpufleet* \
    /etc/apt/keyrings/*cuda* /etc/apt/keyrings/*nvidia* /etc/apt/keyrings/*gpufleet* \
    /etc/apt/trusted.gpg.d/*cuda* /etc/apt/trusted.gpg.d/*nvidia* /etc/pki/rpm-gpg/*NVIDIA* /etc/pki/rpm-gpg/*gpufleet*
# Every repository but those of a subscription, which are many and never gone.
for path in /etc/yum.repos.d/*.repo; do
    case $path in */redhat.repo) ;; *) want "$path" ;; esac
done
old_lib=
[ -L /lib ] || old_lib='/lib/modprobe.d/*'
# Files of a kind that concern us only when they name what we install, forbid or must know of.
want $(grep -lsaiE 'nvidia|cuda|nouveau|nova|gpufleet|unattended|periodic|epel' \
    /etc/apt/preferences /etc/apt/preferences.d/* /etc/apt/apt.conf.d/* /etc/modprobe.d/* \
    /usr/lib/modprobe.d/* $old_lib /etc/modules-load.d/* /etc/yum.repos.d/*.repo \
    /usr/share/keyrings/* /etc/apt/keyrings/* /etc/apt/trusted.gpg.d/* /etc/apt/trusted.gpg)
# containerd's imports, relative to the file that names them.
for config in /etc/containerd/config.toml $configs; do
    [ -r "$config" ] || continue
    IFS=" ,'\"[]$blank"
    set -f
    for text in $(sed -n '/^[[:space:]]*imports[[:space:]]*=/,/\]/p' "$config"); do
        case $text in
            /*.toml) ;;
            *.toml) text=${config%/*}/$text ;;
            *) continue ;;
        esac
        IFS=$nl
        set +f
        want $text
    done
    set +f
done
IFS=$nl
set -f
set --
# A larger file is not a configuration that a person wrote; its size and mode are still reported.
for text in $(stat -L -c '%s %a %U %n' $files); do
    path=${text#* * * }
    if [ "${text%% *}" -gt 131072 ]; then
        say "large $text"
    elif [ -r "$path" ]; then
        say "file $text"
        set -- "$@" "$path"
    else
        say "unreadable $text"
    fi
done
if [ $# -gt 0 ]; then
    if have base64; then
        printf 'base64 '
        cat "$@" | base64 -w 0
    else
        cat "$@" | od -An -v -tx1 | sed 's/^/hex /'
    fi
fi
IFS=$blank
set +f
