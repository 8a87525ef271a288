// Imitation of dcgm-exporter on a node of a cluster: DCGM's metrics of the simulated GPUs, with the
// pods that have them, from nvidia-smi and the kubelet. Options, list of counters, labels and names are
// as in the real one. /run/sim/gpu/SLOT.utilization and SLOT.xid replace what a GPU would say.
package main

import (
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	socket = "unix:///var/lib/kubelet/pod-resources/kubelet.sock"
	state  = "/run/sim/gpu"
	window = "300000" // milliseconds
	query  = "index,uuid,name,pci.bus_id,driver_version,temperature.gpu,power.draw,memory.used,memory.free,utilization.gpu"
)

type counter struct{ field, kind, help string }
type gpu struct {
	labels map[string]string
	values map[string]string
	xid    string
}

func readCounters(path string) ([]counter, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := csv.NewReader(file)
	lines.Comment, lines.FieldsPerRecord, lines.TrimLeadingSpace = '#', -1, true
	records, err := lines.ReadAll()
	var found []counter
	for _, one := range records {
		if len(one) >= 3 {
			found = append(found, counter{strings.TrimSpace(one[0]), strings.TrimSpace(one[1]), one[2]})
		}
	}
	return found, err
}

// pods returns the labels of the containers that have devices, by the devices' names.
func pods(ctx context.Context) (map[string]map[string]string, error) {
	link, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer link.Close()
	answer, err := podresources.NewPodResourcesListerClient(link).List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]string{}
	for _, pod := range answer.GetPodResources() {
		for _, container := range pod.GetContainers() {
			for _, devices := range container.GetDevices() {
				for _, name := range devices.GetDeviceIds() {
					found[name] = map[string]string{"namespace": pod.GetNamespace(), "pod": pod.GetName(), "container": container.GetName()}
				}
			}
		}
	}
	return found, nil
}

// override returns what a file says of a GPU; "" without one.
func override(slot, name string) string {
	text, _ := os.ReadFile(filepath.Join(state, slot+"."+name))
	return strings.TrimSpace(string(text))
}

func readGpus(ctx context.Context, host string) ([]gpu, error) {
	out, err := exec.CommandContext(ctx, "nvidia-smi", "--format=csv,noheader,nounits", "--query-gpu="+query).Output()
	if err != nil {
		return nil, err
	}
	owners, err := pods(ctx)
	if err != nil {
		return nil, err
	}
	var found []gpu
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		f := strings.Split(line, ", ")
		if len(f) != 10 {
			return nil, fmt.Errorf("nvidia-smi printed %q", line)
		}
		slot := strings.ToLower(strings.TrimPrefix(f[3], "0000"))
		one := gpu{
			labels: map[string]string{"gpu": f[0], "UUID": f[1], "modelName": f[2], "pci_bus_id": f[3], "device": "nvidia" + f[0], "hostname": host},
			values: map[string]string{"DCGM_FI_DRIVER_VERSION": f[4], "DCGM_FI_DEV_GPU_TEMP": f[5], "DCGM_FI_DEV_POWER_USAGE": f[6],
				"DCGM_FI_DEV_FB_USED": f[7], "DCGM_FI_DEV_FB_FREE": f[8], "DCGM_FI_DEV_GPU_UTIL": f[9], "DCGM_FI_DEV_XID_ERRORS": "0"},
			xid: override(slot, "xid"),
		}
		for name, text := range owners[f[1]] {
			one.labels[name] = text
		}
		if busy := override(slot, "utilization"); busy != "" {
			one.values["DCGM_FI_DEV_GPU_UTIL"] = busy
		}
		if one.xid != "" {
			one.values["DCGM_FI_DEV_XID_ERRORS"] = one.xid
		}
		found = append(found, one)
	}
	return found, nil
}

func series(name string, labels map[string]string, value string) string {
	var parts []string
	for label, text := range labels {
		parts = append(parts, fmt.Sprintf("%s=%q", label, text))
	}
	sort.Strings(parts)
	return fmt.Sprintf("%s{%s} %s\n", name, strings.Join(parts, ","), value)
}

func with(labels map[string]string, more ...string) map[string]string {
	all := map[string]string{}
	for name, text := range labels {
		all[name] = text
	}
	for i := 0; i+1 < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

func write(counters []counter, gpus []gpu) string {
	var text strings.Builder
	for i := range gpus {
		for _, c := range counters {
			if c.kind == "label" {
				gpus[i].labels[c.field] = gpus[i].values[c.field]
			}
		}
	}
	for _, c := range counters {
		if c.kind == "label" {
			continue
		}
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s %s\n", c.field, strings.TrimSpace(c.help), c.field, c.kind)
		for _, g := range gpus {
			value := g.values[c.field] // none of a field that these GPUs do not have
			if c.field == "DCGM_EXP_XID_ERRORS_COUNT" && g.xid != "" {
				text.WriteString(series(c.field, with(g.labels, "xid", g.xid, "window_size_in_ms", window), "1"))
			} else if value != "" && value != "[N/A]" {
				text.WriteString(series(c.field, g.labels, value))
			}
		}
	}
	return text.String()
}

func main() {
	file := flag.String("f", "/etc/dcgm-exporter/default-counters.csv", "list of counters")
	address := flag.String("a", ":9400", "address")
	flag.Bool("kubernetes", true, "")
	flag.Parse()
	counters, err := readCounters(*file)
	if err != nil {
		log.Fatal(err)
	}
	host := os.Getenv("NODE_NAME")
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "OK") })
	http.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		gpus, err := readGpus(ctx, host)
		if err != nil {
			log.Print(err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, write(counters, gpus))
	})
	log.Fatal(http.ListenAndServe(*address, nil))
}
