# Packages by $format; $carried: which of the driver's packages there are. Parsed by packages.py.
# What plan functions ask for, and whatever dpkg has not fully installed or holds.
families='nvidia|^NVIDIA-|^cuda-(drivers|keyring|repo|compat)|^lib(cuda|nvcuvid|nvoptix|nvsdm|xnvctrl)'
families="$families|^(dkms|dracut|gcc(-[0-9.]+)?|libc6-dev|make|mokutil|epel-release|elfutils-libelf-devel|dpkg|rpm)\$"
families="$families|^(linux|proxmox|pve)-(image|kernel|headers|modules)"
families="$families|^kernel[0-9.]*(-(uek(64k)?|rt|64k|lt|ml|plus|debug))*(-(core|devel|headers|image|modules).*)?\$"
families="$families|^(docker|containerd|cri-(o|tools)|moby|runc|crun|podman|kube(let|adm|ctl|rnetes-cni)|datacenter-gpu)"
families="$families|unattended-upgrades|dnf-automatic|yum-cron|versionlock|modules-extra"
# Which of the driver's packages there are: the exit status is 0 where none was read at all, else 1,
# and 1 more for the library's, 2 for the modules'.
carriers='$1 ~ families && $2 !~ /^i.86$/ && $4 !~ /(config-files|not-installed)$/ {
if ($1 ~ mls) ml = 1
if ($1 ~ kos) ko = 2
}
END { exit NR ? 1 + ml + ko : 0 }'
carried=0
say "format $format"
for path in apt-get dnf yum zypper; do have "$path" && say "tool $path"; done
case $format in
    dpkg)
        dpkg-query -W -f '${Package}\t${Architecture}\t${Version}\t${Status}\n' |
            awk -F '\t' -v families="$families" -v mls="$mls" -v kos="$kos" '$1 ~ families ||
$4 !~ /^(install ok installed|.* (config-files|not-installed))$/
'"$carriers"
        carried=$?
        count /var/lib/dpkg/updates/[0-9]*
        ;;
    rpm)
        rpm -qa --nodigest --nosignature --qf \
            '%{NAME}\t%{ARCH}\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\tinstall ok installed\n' |
            awk -F '\t' -v families="$families" -v mls="$mls" -v kos="$kos" '$1 ~ families
'"$carriers"
        carried=$?
        count /var/lib/yum/transaction-all*
        ;;
    *) total=0 ;;
esac
[ "$total" -gt 0 ] && say "journal $total"
