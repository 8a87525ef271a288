# The health of the GPUs, and their errors in the kernel's log. Parsed by health.py. Only on request.
# XML, because a query of fields fails as a whole if the driver lacks one of them. Of it, only the
# elements $readings are sent: others hold command lines of users. Links without errors are not sent.
query=
if [ -d /sys/module/nvidia ] && have timeout; then
    if have nvidia-smi; then
        query=nvidia-smi
    elif [ -x /run/nvidia/driver/usr/bin/nvidia-smi ]; then
        query='chroot /run/nvidia/driver nvidia-smi'
    fi
fi
if [ "$query" ]; then
    say asked
    {
        {
            timeout -k 5 20 $query -q -x 2>&1 </dev/null
            text=$?
            say "exit $text"
            timeout -k 5 10 $query nvlink -s </dev/null
            timeout -k 5 10 $query nvlink -e </dev/null
            # Of a damaged InfoROM, only the call without options says something.
            [ $text = 0 ] && timeout -k 5 10 $query 2>&1 </dev/null | grep -ai 'inforom is corrupted' | head -n 64
        } | awk -v keep="^[ \t]*</?($readings)[ >]" '
            /<nvidia_smi_log>/ { log_open = 1 }
            !log_open && !/: 0$/ || $0 ~ keep || /^Unable to determine/ { sub(/^[ \t]+/, ""); print }
            /<\/nvidia_smi_log>/ { log_open = 0 }' &
    } | timeout -k 10 60 head -c 4194304
fi
# The errors since the driver was loaded: in the buffer of the kernel, or in the journal if the buffer no
# longer reaches back to the boot. The driver starts NVLink and the NVSwitches before it says that it is loaded.
line /proc/uptime
say "uptime $line"
xids() {
    awk '!first && match($0, /^\[ *[0-9]+/) { first = 1; print "since " substr($0, 2, RLENGTH - 1) }
        /nvidia-nvlink: Nvlink Core is being initialized/ { lines = 0; starts = 1 }
        /NVRM: loading NVIDIA UNIX/ { if (!starts) lines = 0; starts = 0 }
        /: SXid \(.*\): [0-9]+, (Data [{]|Severity [0-9])/ { next }
        /NVRM: Xid \(|: SXid \(/ { found[lines++ % 200] = substr($0, 1, 500) }
        END { for (i = lines > 200 ? lines - 200 : 0; i < lines; i++) print "line " found[i % 200] }'
}
buffer=$(timeout -k 5 10 dmesg | xids)
journal=
case ${buffer%%"$nl"*} in '' | *[0-9][0-9][0-9])
    have journalctl &&
        journal=$(timeout -k 5 10 journalctl -k -b -q -n 100000 --no-pager -o short-monotonic \
            </dev/null | xids)
    ;;
esac
say "${journal:-$buffer}"
