# What the running container runtimes say of themselves. Parsed by answers.py. Only on request.
# A docker that does not run is not asked: its socket would start it.
if [ -e /run/docker.pid ] && have docker && have timeout; then
    say "asked docker"
    text=$(timeout -k 2 10 docker info --format \
        '{{.DefaultRuntime}}{{range $name, $each := .Runtimes}} {{$name}}{{end}}' </dev/null) &&
        say "docker $text"
fi
if [ -S /run/containerd/containerd.sock ] && have ctr && have timeout; then
    say "asked containerd"
    timeout -k 2 10 ctr --connect-timeout 5s plugins ls </dev/null |
        while read -r text name item state; do
            case $text.$name in
                io.containerd.grpc.v1.cri | io.containerd.cri.v1.*) say "plugin ${state##* } $text.$name" ;;
                io.containerd.*) say "plugin - $text.$name" ;;
            esac
        done
fi
