# CDI specs. Parsed by files.py.
IFS=$nl
set -- $(exist /etc/cdi/*.y*ml /etc/cdi/*.json /var/run/cdi/*.y*ml /var/run/cdi/*.json)
IFS=$blank
if [ $# -gt 0 ]; then
    printf 'spec %s\n' "$@"
    grep -m 1 -oHE 'libnvidia-ml\.so\.[0-9]+\.[0-9.]+' "$@"
fi
