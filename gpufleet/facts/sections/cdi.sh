# CDI specs of nvidia.com/gpu. The device plugin's own are of another kind. Parsed by files.py.
IFS=$nl
set -- $(exist /etc/cdi/*.y*ml /etc/cdi/*.json /var/run/cdi/*.y*ml /var/run/cdi/*.json)
[ $# = 0 ] || set -- $(grep -lE 'kind"?: *"?nvidia\.com/gpu' "$@")
IFS=$blank
if [ $# -gt 0 ]; then
    printf 'spec %s\n' "$@"
    grep -m 1 -oHE 'libnvidia-ml\.so\.[0-9]+\.[0-9.]+' "$@"
fi
