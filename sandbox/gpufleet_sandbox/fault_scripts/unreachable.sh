# The network is down. Switched by the container engine, not over SSH.
on() { ip link set eth0 down; }
off() {
    ip link set eth0 up
    ip route replace default via "$GATEWAY"
}
