# Every GPU is 95 % busy, as the exporter of a cluster says.
on() {
    mkdir -p /run/sim/gpu
    for class in $(grep -l '^0x0302' /run/sim/pci/*/class); do
        slot=${class%/class}
        echo 95 >"/run/sim/gpu/${slot##*/}.utilization"
    done
}
off() {
    rm -f /run/sim/gpu/*.utilization
}
