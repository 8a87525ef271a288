# Prints what a host is, in sections that gpufleet/facts/parse.py reads.
#
# Runs as `sh -c` on hosts without Python: POSIX sh, the coreutils, grep, awk and sed of EL 7.
# A process costs about a millisecond, so one process serves many items and the shell's own
# globs and `read` do the rest. Comment lines and leading blanks are removed before it is sent.
# Six variables are set before: `mark` begins the line above every section and is the whole of the
# last line; `configs` names further files to print, one per line; `ports` are TCP ports in
# hexadecimal, separated by |, whose listeners are reported; `words` are dpkg=WORD and rpm=WORD, the
# words in ID and ID_LIKE of /etc/os-release that say how packages are kept; `mls` and `kos` are regular
# expressions of the packages that usually have the driver's library and its modules.
# Every section is printed, empty or not: a missing one means that the output was cut off. What
# stands outside of them, for example what a user's .bashrc prints, is not read.
#
# The output goes through tr because pyinfra refuses a line that is not UTF-8; the content of
# files is in base64, so no byte of it is lost. tr also makes one line of it, in which a record
# separator (octal 36) ends each of these: pyinfra takes as long for an empty line as for a long one.

LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
export LC_ALL PATH
exec 2>/dev/null
nl='
'
blank=$IFS

section() { printf '\n%s%s\n' "$mark" "$1"; }
# say WORD...: one line. echo would not do: dash's makes a line break of \n in a process's name.
say() { printf '%s\n' "$*"; }
have() { command -v "$1" >/dev/null; }

# The functions use variables that nothing else does: sh has no local ones.

# line FILE: the first line of a file, in $line; empty where there is none.
line() {
line=
IFS= read -r line <"$1"
}

# group FILE: the control group that systemd keeps, in $group; empty where there is none.
group() {
group=
while IFS=: read -r number names group; do
case $names in '' | name=systemd) return ;; esac
done <"$1"
group=
}

# exist PATH...: those of the paths that exist, one per line.
exist() {
for item; do [ -e "$item" ] && printf '%s\n' "$item"; done
}

# count PATH...: how many there are, where the first exists (a glob without match is left as is).
count() {
if [ -e "$1" ]; then total=$#; else total=0; fi
}

# owner KIND PATH...: what the package manager says of a file of the driver. Paths under /lib and
# /usr/lib are the same file on most hosts, and dpkg knows one of them.
owner() {
say "asked $1 $2"
shift
[ "$carried" -gt 0 ] || return
set -- "$1" $(readlink -f "$1")
if [ "$format" = rpm ]; then
rpm -qf --nodigest --nosignature --qf '%{NAME}\n' "$@" 2>&1
else
for item; do
case $item in
/usr/lib*) set -- "$@" "${item#/usr}" ;;
/lib*) set -- "$@" "/usr$item" ;;
esac
done
dpkg-query -S "$@" 2>&1
fi | sed 's/^/answer /'
}

gather() {

section identity
line /proc/sys/kernel/random/boot_id
say "boot $line"
line /etc/machine-id
say "machine $line"
user=
while read -r key user text; do
[ "$key" = Uid: ] && break
done </proc/self/status
say "user $user"
# First the last holder, then whether the lock is held: of a run that begins after this line, another
# name will stand there.
line /run/gpufleet.lock
say "run $line"
# A step of a run that was killed goes on without it, and holds the second file.
for path in /run/gpufleet.lock /run/gpufleet.lock.steps; do
[ -e "$path" ] || continue
flock -s -n "$path" true
[ $? -eq 1 ] && say "held" && break
done

section os
like=
for path in /etc/os-release /usr/lib/os-release; do
[ -r "$path" ] || continue
while IFS= read -r text || [ -n "$text" ]; do
printf '%s\n' "$text"
case $text in ID=* | ID_LIKE=*) like="$like $text" ;; esac
done <"$path"
break
done
format=
for item in $words; do
case $like in *"${item#*=}"*) format=${item%%=*}; break ;; esac
done
[ "$format" ] || { have rpm && format=rpm; have dpkg-query && format=dpkg; }

section kernel
# uname prints these in an order of its own: name, release, architecture.
set -- $(uname -nrm)
say "uname $*"
release=$2
for path in /lib/modules/*; do
[ -e "$path/modules.order" ] || [ "${path##*/}" = "$release" ] || continue
headers=no
[ -d "$path/build" ] && headers=yes
say "installed $headers ${path##*/}"
done
path=/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
[ -r "$path" ] && say "secureboot" $(od -An -tu1 "$path")

section pci
IFS=$nl
for path in $(grep -ls 0x10de /sys/bus/pci/devices/*/vendor); do
path=${path%/vendor}
line "$path/device"
device=$line
line "$path/class"
class=$line
driver=-
cd -P "$path/driver" && driver=${PWD##*/}
# The width of the link is read from the device: all ones of one that no longer answers, and of one
# that sleeps.
line "$path/current_link_width"
width=${line:--}
line "$path/power/runtime_status"
[ "$line" = suspended ] && width=-
say "${path##*/} $device $class $driver $width"
done
IFS=$blank
cd /
# The driver keeps those that fell off the bus.
for path in /proc/driver/nvidia/gpus/*; do
[ -d "$path" ] && say "taken ${path##*/}"
done

section modules
grep -sE '^(nvidia|nouveau|nova|i2c_core |ipmi_msghandler |ipmi_devintf )' /proc/modules
say
for path in /sys/module/nvidia* /sys/module/nouveau /sys/module/nova* \
/sys/module/i2c_core /sys/module/ipmi_msghandler /sys/module/ipmi_devintf; do
[ -d "$path" ] || continue
line "$path/version"
version=$line
line "$path/refcnt"
say "module ${path##*/} ${line:--} $version"
done

section modinfo
ondisk=
[ -d "/lib/modules/$release" ] && modinfo nvidia nvidia-current |
grep -E '^(filename|version|license|signer):' && ondisk=yes

section library
set -- $(exist /usr/lib/*-linux-gnu/libnvidia-ml.so.[0-9]*.[0-9]* \
/usr/lib/*-linux-gnu/nvidia/*/libnvidia-ml.so.[0-9]*.[0-9]* \
/usr/lib64/libnvidia-ml.so.[0-9]*.[0-9]* /usr/lib64/nvidia/libnvidia-ml.so.[0-9]*.[0-9]* \
/usr/lib/libnvidia-ml.so.[0-9]*.[0-9]*)
printf 'file %s\n' $*
libraries=$*
# The loader's link says which of several is used; with one file there is nothing to ask.
[ $# -gt 1 ] && for path in $(exist /usr/lib/*-linux-gnu/libnvidia-ml.so.1 \
/usr/lib64/libnvidia-ml.so.1 /usr/lib/libnvidia-ml.so.1); do
say "used $(readlink -f "$path")"
done

section dkms
# What dkms itself looks at: `dkms status` takes as long as the rest of this script.
for path in /var/lib/dkms/*/*/source; do
[ -L "$path" ] || continue
path=${path%/source}
name=${path%/*}
name=${name##*/}
state=added
for built in "$path"/*/*/module; do
[ -d "$built" ] || continue
built=${built%/module}
arch=${built##*/}
kernel=${built%/*}
kernel=${kernel##*/}
state=built
[ "${path%/*}/kernel-$kernel-$arch" -ef "$built" ] && state=installed
say "$name/${path##*/}, $kernel, $arch: $state"
done
[ $state = added ] && say "$name/${path##*/}: added"
done
# Its tree can have been moved, by /etc/dkms/framework.conf.
[ -d /var/lib/dkms ] || { have dkms && dkms status; }

section devices
for path in /dev/nvidia*; do [ -c "$path" ] && say "$path"; done

section packages
# What plan functions ask for, and whatever dpkg has not fully installed or holds.
families='nvidia|^NVIDIA-|^cuda-(drivers|keyring|repo|compat)|^lib(cuda|nvcuvid|nvoptix|nvsdm|xnvctrl)'
families="$families|^(dkms|gcc(-[0-9.]+)?|libc6-dev|make|mokutil|epel-release|elfutils-libelf-devel|dpkg|rpm)\$"
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

section trust
[ "$format" = rpm ] &&
rpm -q gpg-pubkey --nodigest --nosignature --qf '@key gpg-pubkey-%{VERSION}-%{RELEASE}\n%{DESCRIPTION}\n' |
grep -v '^package '

section lock
# Advisory locks are found by inode; yum and dnf write their process id into a file. Package managers
# lock by fcntl: a flock is not in their way.
locks=
for lock in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock \
/var/cache/apt/archives/lock /var/lib/rpm/.rpm.lock; do
[ -e "$lock" ] && locks="$locks$nl$lock"
done
IFS=$nl
inodes=
[ "$locks" ] && inodes=$(stat -c %i $locks)
IFS=$blank
while read -r number kind advice mode pid place text; do
[ "$inodes" ] && [ "$kind" != FLOCK ] && [ "$mode" = WRITE ] || continue
case "$nl$inodes$nl" in *"$nl${place##*:}$nl"*) ;; *) continue ;; esac
for path in /proc/"$pid"/fd/*; do
IFS=$nl
for lock in $locks; do
[ "$path" -ef "$lock" ] && line "/proc/$pid/comm" && say "$pid $line" && break 2
done
done
IFS=$blank
done </proc/locks
IFS=$blank
for path in /var/run/yum.pid /run/zypp.pid /var/cache/dnf/metadata_lock.pid \
/var/lib/dnf/rpmdb_lock.pid; do
line "$path"
case $line in '' | *[!0-9]*) continue ;; esac
[ -r "/proc/$line/comm" ] && pid=$line && line "/proc/$pid/comm" && say "$pid $line"
done

section services
# systemctl takes two milliseconds for a unit, also for one that does not exist.
set --
for unit in docker.service containerd.service crio.service kubelet.service k3s.service \
k3s-agent.service rke2-server.service rke2-agent.service snap.microk8s.daemon-kubelite.service \
snap.docker.dockerd.service snap.microk8s.daemon-containerd.service k0scontroller.service \
k0sworker.service \
nvidia-persistenced.service nvidia-fabricmanager.service nvidia-imex.service \
nvidia-cdi-refresh.path nvidia-cdi-refresh.service nvidia-dcgm.service dcgm.service \
dcgm-exporter.service nvidia-dcgm-exporter.service gpufleet-dcgm-exporter.service \
unattended-upgrades.service \
apt-daily-upgrade.timer dnf-automatic.timer dnf-automatic-install.timer yum-cron.service \
display-manager.service; do
for path in /etc /run /usr/local/lib /usr/lib /lib; do
[ -e "$path/systemd/system/$unit" ] || [ -L "$path/systemd/system/$unit" ] || continue
set -- "$@" "$unit"
break
done
done
units=
[ $# -gt 0 ] && units=$(systemctl show -p Names -p LoadState -p ActiveState -p UnitFileState \
-p ExecStart -p ActiveEnterTimestampMonotonic -p NeedDaemonReload "$@")
while IFS= read -r text; do
case $text in
Names=*) item=${text#Names=} ;;
# systemd keeps this state of a loaded unit until it reads its units again
UnitFileState=disabled) text=UnitFileState=$(systemctl is-enabled "${item%% *}") ;;
esac
say "$text"
done <<END
$units
END

section runtimes
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
for path in /var/lib/rancher/*/data/*/bin/containerd; do
[ -x "$path" ] && say "version rancher $("$path" --version)" && break
done
# A runtime's own --config or --config-file: the word after it, or the rest of the word.
next=
set -f
for text in $units; do
case $text in
--config=* | --config-file=*) configs="$configs$nl${text#*=}" ;;
--config | --config-file) next=1; continue ;;
/*) [ "$next" ] && configs="$configs$nl$text" ;;
esac
next=
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

section gpu
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
# Containers that have GPUs, also while they use none, by the bundles of runc; not gpufleet's exporter.
line /run/gpufleet-dcgm-exporter.cid
for text in $(grep -lsE '"[/]dev/nvidia[c0-9]|"NVIDIA_VISIBLE_DEVICES=[^"nv].*nvidia-container-[rt]' \
/run/containerd/io*/*/*/config.json /run/*/containerd/io*/*/*/config.json \
/run/*/containerd/*/io*/*/*/config.json \
/run/containers/storage/overlay-containers/*/userdata/config.json); do
case $text in */"$line"/*) ;; *) say "given $text" ;; esac
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

section collectors
# Who collects metrics: by name, and by DCGM's library in the memory of who holds a GPU.
set --
for path in $holders; do set -- "$@" "$path/maps"; done
[ $# -gt 0 ] && set -- $(grep -lsF libdcgm.so "$@")
for path in $holders; do
line "$path/comm"
[ "$line" = starship ] && set -- "$@" "$path/comm"
done
set -- "$@" $(grep -lsxE 'nv-hostengine|dcgm-exporter' /proc/[0-9]*/comm | head -n 1000) -
IFS=$nl
for text in $sockets; do say "listen $text"; done
for text in $owners; do
say "owner $text"
set -- "$@" "/proc/${text%% *}/comm"
done
IFS=$blank
word=collector
known=
for path; do
[ "$path" = - ] && word=process && continue
path=${path%/*}
pid=${path##*/}
case " $known " in *" $pid "*) continue ;; esac
known="$known $pid"
line "$path/comm"
say "$word $pid $line"
group "$path/cgroup"
[ "$group" ] && say "cgroup $pid ${group#"$base"}"
done

section space
stat -f -c '%a %S %n' / /boot /var /usr /tmp

section oddities
[ -x /usr/bin/nvidia-uninstall ] && say "runfile uninstaller"
[ -e /var/log/nvidia-installer.log ] && say "runfile log"
count /run/nvidia/driver/*
[ "$total" -gt 0 ] && say operator-driver
# Where images, clouds and their installers put a driver.
for path in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /opt/nvidia/lib64 /opt/nvidia/lib \
/var/lib/nvidia/lib64 /var/lib/nvidia/lib /usr/local/lib64 /usr/local/lib; do
count "$path"/libnvidia-ml.so.[0-9]*.[0-9]*
[ "$total" -gt 0 ] || continue
say "driver $path"
libraries="$libraries $(exist "$path"/libnvidia-ml.so.[0-9]*.[0-9]*)"
done
# Whose the driver is, where no usual package has it.
case $carried in 0 | 1 | 3)
# The loader may know of a library elsewhere, whose folder may be of another machine.
if [ -z "$libraries" ] && [ -d /sys/module/nvidia ]; then
for path in $(grep -aoE '/[!-~]+/libnvidia-ml\.so\.1' /etc/ld.so.cache); do
case $path in
/usr/* | /lib/* | /lib64/*) [ -e "$path" ] && libraries="$libraries $path" ;;
*) say "cache $path" ;;
esac
done
fi
for path in $libraries; do owner library "$path"; done
esac
case $ondisk$carried in yes[012])
path=$(modinfo nvidia nvidia-current | sed -n 's/^filename: *//p' | head -n 1)
owner module "$path"
for path in $(exist /var/lib/dkms/nvidia*/*/source); do owner source "$(readlink -f "$path")"; done
esac

section cdi
IFS=$nl
set -- $(exist /etc/cdi/*.y*ml /etc/cdi/*.json /var/run/cdi/*.y*ml /var/run/cdi/*.json)
IFS=$blank
if [ $# -gt 0 ]; then
printf 'spec %s\n' "$@"
grep -m 1 -oHE 'libnvidia-ml\.so\.[0-9]+\.[0-9.]+' "$@"
fi

section files
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
/var/lib/gpufleet/driver.before.begun /var/lib/gpufleet/toolkit.before.begun \
/var/lib/gpufleet/runtimes/*.json \
/etc/containerd/conf.d/*.toml /etc/crio/crio.conf.d/* \
/etc/apt/auth.conf.d/gpufleet-*.conf \
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

section kubernetes
# What kubeadm asks before it starts; no process is needed for it.
line /proc/sys/kernel/hostname
say "name $line"
text=1
[ -e /sys/fs/cgroup/cgroup.controllers ] && text=2
say "cgroups $text"
count /sys/devices/system/cpu/cpu[0-9]*
say "processors $total"
while read -r key text; do
[ "$key" = MemTotal: ] && say "memory ${text%% *}" && break
done </proc/meminfo
while read -r key text; do
[ "$key" = Filename ] || say "swap $key"
done </proc/swaps
for path in /sys/class/net/*/device; do
[ -e "$path" ] && line "${path%/device}/address" && say "mac $line"
done
# the API server's address, as the node reaches it; then, on a control plane, as its users do
for path in /etc/kubernetes/kubelet.conf /etc/kubernetes/admin.conf; do
[ -r "$path" ] || continue
while read -r key text; do
[ "$key" = server: ] && say "server $text" && break
done <"$path"
done
path=/etc/kubernetes/manifests/kube-apiserver.yaml
if [ -r "$path" ]; then
while read -r key text; do
[ "${key##*/}" = kube-apiserver.advertise-address.endpoint: ] && say "advertised $text" && break
done <"$path"
fi
for path in /etc/kubernetes/*.conf /etc/kubernetes/manifests/* /etc/kubernetes/pki/* \
/var/lib/kubelet/config* /var/lib/etcd/member /etc/cni/net.d/* /var/lib/gpufleet/kubernetes.* \
/sys/class/net/cni0 /sys/class/net/flannel.1 /var/lib/gpufleet/containerd.* \
/etc/rancher/*/*.yaml /var/lib/rancher/*/server /var/lib/rancher/*/agent; do
[ -e "$path" ] && say "path $path"
done
path=/etc/kubernetes/pki/ca.crt
if [ -r "$path" ]; then
while read -r text; do
case $text in
-----BEGIN*) line= ;;
-----END*) say "authority $line" ;;
*) line=$line$text ;;
esac
done <"$path"
fi

section end
date '+clock %s'
say "$mark"
}

# The controller keeps all of it in memory. What is cut off lacks its end, and is refused.
gather | tr '\12\0-\10\13-\37\177-\377' '\36[?*]' | head -c 67108864
