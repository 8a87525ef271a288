# Every GPU is 95 % busy, as the exporter of a cluster says.
on() {
    mkdir -p /run/sim/gpu
    for vendor in $(grep -l 0x10de /run/sim/pci/*/vendor); do
        slot=${vendor%/vendor}
        echo 95 >"/run/sim/gpu/${slot##*/}.utilization"
    done
}
off() {
    rm -f /run/sim/gpu/*.utilization
}
