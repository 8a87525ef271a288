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
    # Only the handlers: the whole answer may hold passwords of registries. Without crictl, the cgroup
    # drivers in its files, as it reads them, if its unit names no other file.
    if have crictl; then
        timeout -k 2 10 crictl --timeout 5s -r unix:///run/containerd/containerd.sock \
        info -o go-template --template '{{with .config.containerd}}default containerd {{.defaultRuntimeName}}
{{range $name, $each := .runtimes}}handler containerd {{$name}}{{with $each.options}} {{index . "SystemdCgroup"}}{{end}}
{{end}}{{end}}' </dev/null
    else
        case $units in *'argv[]=/usr/bin/containerd ;'* | *'argv[]=/usr/local/bin/containerd ;'*)
            timeout -k 2 10 containerd config dump </dev/null | awk '{ gsub(/["\047]/, "") }
                /^ *\[/ { part = $1 }
                $1 == "default_runtime_name" { print "default containerd " $3 }
                $1 == "SystemdCgroup" && sub(/.*\.runtimes\./, "", part) && sub(/\.options\]$/, "", part) {
                    print "file containerd " part " " $3
                }'
            ;;
        esac
    fi
fi
# Its configuration by the file that it has read, as `crio config` reads the files of now. Programs of
# crio-status are of 1.28 and older; `crio status` is there from 1.27 on.
if [ -S /run/crio/crio.sock ] && have crio && have timeout; then
    item='crio status'
    have crio-status && item=crio-status
    text=$(timeout -k 2 10 $item config </dev/null)
    case $? in
        0)
            say "asked crio"
            printf '%s\n' "$text" | awk '{ gsub(/["\r]/, "") }
                /^ *\[/ { part = $1 }
                /^ *\[crio\.runtime\.runtimes\.[^].]+\]/ { gsub(/.*runtimes\.|\].*/, ""); print "handler crio " $0 }
                part != "[crio.runtime]" { next }
                $1 == "default_runtime" { print "default crio " $3 }
                $1 == "cgroup_manager" { print "cgroups crio " $3 }'
            ;;
        124 | 137) say "asked crio" ;;
    esac
fi
