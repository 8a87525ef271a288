# A process uses GPU 0: it opens the same device files as a CUDA program.
on() {
    if [ ! -e /dev/nvidia0 ]; then
        echo "no /dev/nvidia0: load the driver first" >&2
        exit 1
    fi
    if [ ! -e /dev/nvidia-uvm ]; then modprobe nvidia-uvm; fi
    systemd-run -q --collect --unit=gpu-job \
        bash -c 'exec -a train sleep infinity 3<>/dev/nvidia0 4<>/dev/nvidia-uvm'
}
off() { if systemctl -q is-active gpu-job; then systemctl stop gpu-job; fi; }
