# collect REPORT: print what explains a fault of this host; nothing is changed. REPORT: "yes" runs NVIDIA's own report, too.
# Each item is two lines, read by parse.py: `item`, its limits in bytes and seconds, its name and its command, with tabs
# between; then the output in gzip and base64, whose last line is `exit STATUS`. A reason why there is no item is one
# line: `none`, a name, the reason. Nothing is written on the host, whose disk may be full, but by NVIDIA's report.
report=$1
tab='	'
# item END NAME BYTES SECONDS COMMAND...: the output of a command; END, head or tail, is kept if it is longer than BYTES.
# In the background, as a command that waits for a GPU may never end, and no signal ends it then.
item() {
    end=$1 name=$2 bytes=$3 seconds=$4
    shift 4
    if ! has "$1"; then
        printf 'none\t%s\t%s is not installed\n' "$name" "$1"
        return
    fi
    printf 'item\t%s\t%s\t%s\t%s\n' "$bytes" "$seconds" "$name" "$(printf %s "$*" | tr '\n\t' '  ')"
    {
        {
            timeout -k 5 "$seconds" "$@" 2>&1 </dev/null
            printf '\nexit %s\n' $?
        } &
    } | timeout -k 5 $((seconds + 10)) "$end" -c "$bytes" | gzip -c | base64 -w 0
    echo
}
# file PATH: the start of a file
file() {
    case $1 in *"$tab"* | *'
'*) return ;; esac
    [ -f "$1" ] && item head "files$1" 262144 10 cat "$1"
}

item head system.txt 262144 20 sh -c 'date -u; uname -a; uptime; cat /etc/os-release /proc/cmdline; free -m; df -h'
item head modules.txt 262144 10 cat /proc/modules
item head pci.txt 262144 20 lspci -nnk -d 10de:
item tail kernel.log 2097152 60 sh -c 'journalctl -k -b -q -n 5000 --no-pager -o short-precise | grep . || dmesg'
item head units-failed.txt 262144 20 systemctl --failed --all --no-pager --no-legend

# The units, without their command lines: these may hold tokens
set --
for path in nvidia-persistenced nvidia-fabricmanager nvidia-imex nvidia-dcgm nvidia-cdi-refresh nvidia-mig-manager docker \
    containerd crio kubelet k3s k3s-agent rke2-server rke2-agent /etc/systemd/system/gpufleet-*.service; do
    path=${path##*/}
    path=${path%.service}
    for folder in /etc /run /usr/local/lib /usr/lib /lib; do
        [ -e "$folder/systemd/system/$path.service" ] || continue
        set -- "$@" "$path.service"
        break
    done
done
if [ $# -gt 0 ]; then
    item head units.txt 262144 20 systemctl show -p Id -p LoadState -p ActiveState -p SubState -p Result \
        -p ExecMainStatus -p UnitFileState -p ActiveEnterTimestamp "$@"
    for unit; do
        item tail "logs/$unit.log" 524288 60 journalctl -u "$unit" -q -n 500 --no-pager -o short-precise
    done
fi

# Without the module, nvidia-smi would load it
smi=nvidia-smi
if ! has nvidia-smi && [ -x /run/nvidia/driver/usr/bin/nvidia-smi ]; then
    smi='chroot /run/nvidia/driver nvidia-smi'
fi
if [ -d /sys/module/nvidia ]; then
    item head nvidia-smi.txt 2097152 60 $smi -q
    item head nvidia-smi-topology.txt 262144 60 $smi topo -m
else
    printf 'none\tnvidia-smi.txt\tthe module nvidia is not loaded\n'
fi

item head dkms.txt 262144 60 dkms status
for path in $(ls -t /var/lib/dkms/*/*/build/make.log /var/lib/dkms/*/*/*/*/log/make.log 2>/dev/null | head -n 2); do
    item tail "files$path" 262144 10 cat "$path"
done
words='nvidia|cuda|nvcuvid|nvoptix|nouveau|dkms|docker|containerd|moby|runc|crun|cri-(o|tools)|podman|kube|datacenter-gpu'
words="$words|kernel|linux-(image|headers|modules)"
if has dpkg-query; then
    item head packages.txt 524288 60 sh -c 'dpkg-query -W -f "\${db:Status-Abbrev} \${Package} \${Architecture} \${Version}\n" |
grep -E "$1"; apt-mark showhold; dpkg --audit' sh "$words"
else
    item head packages.txt 524288 60 sh -c 'rpm -qa | grep -E "$1" | sort' sh "$words"
fi
for path in /etc/cdi/* /var/run/cdi/*; do file "$path"; done

if [ "$report" = yes ]; then
    # It adds .gz to the name of its file if it has gzip:
    # https://github.com/sakjain92/Fractional-GPUs/blob/master/driver/NVIDIA-Linux-x86_64-390.48/nvidia-bug-report.sh (read 2026-11-29)
    if ! has nvidia-bug-report.sh; then
        printf 'none\tnvidia-bug-report.log\tnvidia-bug-report.sh is not installed\n'
    elif ! folder=$(mktemp -d); then
        printf 'none\tnvidia-bug-report.log\tits folder in /tmp cannot be created\n'
    else
        trap 'rm -rf "$folder"' EXIT
        trap 'exit 1' HUP INT PIPE TERM
        item head nvidia-bug-report.log 33554432 600 sh -c 'nvidia-bug-report.sh --output-file "$1/report" >"$1/said" 2>&1
status=$?; if [ -f "$1/report.gz" ]; then gzip -dc "$1/report.gz"; else cat "$1/report" "$1/said"; fi; exit $status' sh "$folder"
    fi
fi
