# A process holds the locks of apt and dpkg, like an unattended upgrade.
on() {
    systemd-run -q --collect --unit=sim-lock --property=Type=notify --property=NotifyAccess=all \
        python3 -c '
import fcntl, signal, subprocess
held = [open("/var/lib/dpkg/" + name, "w") for name in ("lock-frontend", "lock")]
for file in held:
    fcntl.lockf(file, fcntl.LOCK_EX)
subprocess.run(["systemd-notify", "--ready"])
signal.pause()
'
}
off() { if systemctl -q is-active sim-lock; then systemctl stop sim-lock; fi; }
