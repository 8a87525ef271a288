# A program uses the first MIG instance of GPU 0: it has the instance's device file open.
on() {
    access=$(ls /proc/driver/nvidia/capabilities/gpu0/mig/gi*/access 2>/dev/null | head -1)
    if [ -z "$access" ]; then
        echo "no MIG instance: create one first" >&2
        exit 1
    fi
    minor=$(sed -n 's/DeviceFileMinor: //p' "$access")
    systemd-run -q --collect --unit=mig-job \
        bash -c "exec -a train sleep infinity 3</dev/nvidia-caps/nvidia-cap$minor"
}
off() { if systemctl -q is-active mig-job; then systemctl stop mig-job; fi; }
