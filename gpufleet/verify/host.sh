# What the checks read from a host, in one run of POSIX sh. Nothing here changes the host.
driver_sections() {
    section uid id -u
    section os-release cat /etc/os-release
    section kernel uname -r
    section provenance cat /var/lib/gpufleet/provenance.json
    section pci pci_devices
    section driver-gpus ls /proc/driver/nvidia/gpus
    section modules cut -d' ' -f1 /proc/modules
    section loaded-version cat /sys/module/nvidia/version
    section module-file module_file
    section nova-on-disk modinfo -F filename nova_core
    section dkms dkms status
    section blacklist blacklisted
    section initramfs initramfs
    section library library
    section smi-version limit nvidia-smi --query-gpu=driver_version --format=csv,noheader
    section smi-list limit nvidia-smi -L
    if [ -e /etc/gpufleet-gpus ]; then
        section gpu-state limit nvidia-smi --format=csv,noheader,nounits \
            --query-gpu=index,pci.bus_id,mig.mode.current,mig.mode.pending,power.limit,power.default_limit,compute_mode,ecc.mode.current
    fi
    section device-nodes device_nodes
    section services unit_states \
        nvidia-persistenced.service nvidia-fabricmanager.service nvidia-dcgm.service \
        nvidia-dcgm-exporter.service gpufleet-dcgm-exporter.service gpufleet-gpus.service
}

package_sections() {
    section dpkg dpkg-query -W -f '${Package}\t${Version}\t${Architecture}\t${Status}\n'
    section dpkg-audit dpkg --audit
    section rpm rpm -qa --qf '%{NAME}\t%{EPOCH}:%{VERSION}-%{RELEASE}\t%{ARCH}\n'
    section rpm-unfinished rpm_unfinished
    section versionlock versionlock
    section unattended apt-config dump --format '%f %v%n' \
        APT::Periodic::Unattended-Upgrade Unattended-Upgrade::Package-Blacklist
}

toolkit_sections() {
    section nvidia-ctk nvidia-ctk --version
    section toolkit-programs toolkit_programs
    section low-level-runtime limit nvidia-container-runtime --version
    section toolkit-config cat /etc/nvidia-container-runtime/config.toml
    for spec in /etc/cdi/*.yaml /etc/cdi/*.json /var/run/cdi/*.yaml /var/run/cdi/*.json; do
        if [ -f "$spec" ]; then section "cdi:$spec" cat "$spec"; fi
    done
}

toolkit_programs() { # of the packages that are installed, and whether each can be run
    if command -v dpkg-query >/dev/null; then
        dpkg-query -W -f '${db:Status-Status} ${Package}\n' \
            'nvidia-container-toolkit*' libnvidia-container-tools 2>/dev/null |
            sed -n 's/^installed //p' | xargs -r dpkg -L
    else
        rpm -qa 'nvidia-container-toolkit*' libnvidia-container-tools | xargs -r rpm -ql
    fi | grep '^/usr/bin/' | sort -u | while read -r program; do
        if [ -f "$program" ] && [ -x "$program" ]; then echo "runs $program"
        elif [ -e "$program" ]; then echo "not-executable $program"
        else echo "missing $program"
        fi
    done
}

exporter_sections() { # of the recorded exporter
    url=$(sed -n 's/^ *"metrics": "\(http[^"]*\)".*/\1/p' /var/lib/gpufleet/provenance.json 2>/dev/null)
    section metrics metrics
    section listening listening
    section exporter-version exporter_version
}

fetch() { # wget has a limit for each read, and none for all of them
    if command -v curl >/dev/null; then limit curl -fsS --noproxy '*' --max-time 15 "$url"
    else limit wget -q --no-proxy -T 15 -t 1 -O - "$url"
    fi
}

metrics() { # name and UUID of every series; anyone can listen on the port of an exporter that is down
    [ -n "$url" ] || return
    answer=$({ fetch; printf '\nstatus %s\n' "$?"; } | head -c 16777216)
    status=$(printf '%s\n' "$answer" | tail -n 1 | head -c 100)
    case $status in
    'status 0') ;;
    'status '*) return "${status#status }" ;;
    *) echo "$url sends more than 16 MiB"; return 1 ;;
    esac
    printf '%s\n' "$answer" | sed -n 's/^\([A-Z_0-9]*\){.*UUID="\([^"]*\)".*/\1 \2/p' | sort -u
}

listening() { awk '$4 == "0A" { print $2 }' /proc/net/tcp /proc/net/tcp6; }

exporter_version() {
    if grep -q '"mode": "docker"' /var/lib/gpufleet/provenance.json; then
        limit docker inspect --format '{{.Config.Image}}' gpufleet-dcgm-exporter
    else
        limit dcgm-exporter --version
    fi
}

pci_devices() {
    for device in /sys/bus/pci/devices/*; do
        [ -e "$device/vendor" ] || continue
        read -r vendor <"$device/vendor"
        [ "$vendor" = 0x10de ] || continue
        read -r class <"$device/class"
        echo "${device##*/} $class"
    done
}

module_file() { # Debian's own packages call the file nvidia-current.ko
    for name in nvidia nvidia-current; do
        if modinfo -F filename "$name" 2>/dev/null; then
            modinfo -F version "$name" && modinfo -F license "$name"
            return
        fi
    done
    modinfo -F filename nvidia
}

blacklisted() { modprobe --showconfig | sed -n 's/^blacklist //p'; }

initramfs() { # the image of the running kernel: the lines that matter, and who should be in it
    kernel=$(uname -r)
    for file in "/boot/initrd.img-$kernel" "/boot/initramfs-$kernel.img"; do
        if [ -f "$file" ]; then break; fi
    done
    for tool in lsinitramfs lsinitrd; do
        if command -v "$tool" >/dev/null; then break; fi
    done
    if [ ! -f "$file" ] || ! command -v "$tool" >/dev/null; then
        echo "no initramfs of $kernel in /boot, or no lsinitramfs or lsinitrd to read it"
        return 3
    fi
    image=$(limit "$tool" "$file") || return
    printf '%s\n' "$image" | grep -E 'modprobe\.d/|/nouveau\.ko|/nova_core\.ko'
    echo "blacklists nouveau:"
    grep -lsE '^[[:space:]]*blacklist[[:space:]]+nouveau' \
        /etc/modprobe.d/*.conf /lib/modprobe.d/*.conf /usr/lib/modprobe.d/*.conf
    return 0
}

library() {
    found=$(ldconfig -p | sed -n 's/.*libnvidia-ml\.so\.1 (.*x86-64.*=> //p; s/.*libnvidia-ml\.so\.1 (.*AArch64.*=> //p' | head -n 1)
    if [ -z "$found" ]; then echo "no libnvidia-ml.so.1 in the linker's cache"; return 1; fi
    readlink -f "$found"
}

device_nodes() {
    for node in /dev/nvidia*; do
        if [ -c "$node" ]; then echo "$node"; fi
    done
}

rpm_unfinished() { ls /var/lib/yum/transaction-all.* 2>/dev/null; return 0; }

versionlock() {
    for list in /etc/yum/pluginconf.d/versionlock.list /etc/dnf/plugins/versionlock.list \
        /etc/dnf/versionlock.toml; do
        if [ -f "$list" ]; then cat "$list"; fi
    done
}

driver_sections
package_sections
toolkit_sections
exporter_sections
