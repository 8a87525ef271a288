# Units, and what systemd says of them ($units). Parsed by services.py.
# systemctl takes two milliseconds for a unit, also for one that does not exist.
set --
for unit in docker.service containerd.service crio.service kubelet.service k3s.service \
    k3s-agent.service rke2-server.service rke2-agent.service snap.microk8s.daemon-kubelite.service \
    snap.docker.dockerd.service snap.microk8s.daemon-containerd.service k0scontroller.service \
    k0sworker.service snap.k8s.containerd.service snap.k8s.kubelet.service \
    nvidia-persistenced.service nvidia-fabricmanager.service nvidia-imex.service \
    nvidia-cdi-refresh.path nvidia-cdi-refresh.service nvidia-dcgm.service dcgm.service \
    dcgm-exporter.service nvidia-dcgm-exporter.service gpufleet-dcgm-exporter.service \
    gpufleet-gpus.service nvidia-mig-manager.service \
    unattended-upgrades.service \
    apt-daily-upgrade.timer dnf-automatic.timer dnf-automatic-install.timer yum-cron.service \
    display-manager.service firewalld.service; do
    for path in /etc /run /usr/local/lib /usr/lib /lib; do
        [ -e "$path/systemd/system/$unit" ] || [ -L "$path/systemd/system/$unit" ] || continue
        set -- "$@" "$unit"
        break
    done
done
units=
[ $# -gt 0 ] && units=$(systemctl show -p Names -p LoadState -p ActiveState -p UnitFileState \
    -p ExecStart -p ActiveEnterTimestampMonotonic -p NeedDaemonReload -p Requires -p BindsTo "$@")
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
