package cuda

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/lazy"
	"onlinerna/cuda/nvml"
)

// A Report is the result of [Look].
type Report struct {
	Built        bool            // the build has GPU support
	Hardware     []string        // NVIDIA's GPUs on the PCI bus, as the kernel lists them
	KernelModule string          // the version of the running NVIDIA driver, empty if none runs
	CUDA         int             // the CUDA version that the driver supports, 1000·major + 10·minor; 0 when unknown
	Libraries    []LibraryReport // only in a build with GPU support
	GPUs         []GPUReport     // as the driver lists them
	Err          error           // the driver's error when it cannot list GPUs
	Visible      string          // the value of CUDA_VISIBLE_DEVICES
}

// A LibraryReport describes a library that was found, or the reason why it cannot be used.
type LibraryReport struct {
	Library lazy.Library
	Version string
	CUDA    int // the CUDA version it was built for, 1000·major + 10·minor; 0 when unknown, and for the driver
	File    string
	Err     error
}

// fits returns an error for a library that needs a later CUDA than the driver supports.
func (l LibraryReport) fits(driver int) error {
	if l.CUDA == 0 || driver == 0 || l.CUDA/1000 <= driver/1000 {
		return nil
	}
	return fmt.Errorf("%v %s is for CUDA %d, and the driver supports CUDA %s: %s; %s", l.Library, l.Version,
		l.CUDA/1000, lazy.VersionString(driver),
		l.File, l.Library.Install(driver))
}

// A GPUReport is a GPU and its state, or the reason why it cannot be used.
type GPUReport struct {
	Info
	Free  int64      // bytes of memory; 0 if NVML is missing and the GPU was not tried
	State nvml.State // zero if NVML is missing
	Tried bool       // a test convolution gave the right result
	Err   error
}

// optional reports whether nets on one GPU do without a library.
func optional(l lazy.Library) bool { return l == lazy.NCCL || l == lazy.NVML }

// Look reports the machine's GPUs, driver and libraries. It opens no GPU: [Report.Try] does. It does not fail: the
// report lists missing parts.
func Look() *Report {
	r := &Report{Built: lazy.Built, Hardware: pciGPUs("/sys/bus/pci/devices"),
		KernelModule: kernelModule("/proc/driver/nvidia/version")}
	r.Visible = os.Getenv("CUDA_VISIBLE_DEVICES")
	r.load()
	return r
}

// pciGPUs lists NVIDIA's display controllers and accelerators in Linux's list of PCI devices.
func pciGPUs(folder string) []string {
	devices, _ := filepath.Glob(filepath.Join(folder, "*"))
	var all []string
	for _, d := range devices {
		read := func(name string) string {
			b, _ := os.ReadFile(filepath.Join(d, name)) // an unreadable file leaves "": not an NVIDIA device
			return strings.TrimPrefix(strings.TrimSpace(string(b)), "0x")
		}
		class := read("class")
		if read("vendor") == "10de" && (strings.HasPrefix(class, "0300") || strings.HasPrefix(class, "0302")) {
			all = append(all, fmt.Sprintf("10de:%s at %s", read("device"), filepath.Base(d)))
		}
	}
	return all
}

var moduleVersion = regexp.MustCompile(`\b\d{3,}\.\d+(\.\d+)?\b`)

// kernelModule reads the version of the driver's kernel module.
func kernelModule(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if v := moduleVersion.FindString(line); v != "" {
		return v
	}
	return strings.TrimSpace(line)
}

// Usable reports whether some GPU can run RNA: cuBLAS and NVRTC load, and it opened if it was tried.
func (r *Report) Usable() bool {
	for _, l := range r.Libraries {
		if l.Err != nil && l.Library != lazy.CuDNN && !optional(l.Library) {
			return false
		}
	}
	for _, g := range r.GPUs {
		if g.Err == nil {
			return true
		}
	}
	return false
}

// freeEnough is the share of the largest free memory at which a GPU counts as free: a desktop on the first GPU does not
// disqualify it.
const freeEnough = .8

// Net is the number of the GPU for nets, which need cuDNN, too: the first among those with the most free memory,
// because the others are busy. It is −1 if there is none.
func (r *Report) Net() int {
	for _, l := range r.Libraries {
		if l.Err != nil && !optional(l.Library) {
			return -1
		}
	}
	var most int64
	for _, g := range r.GPUs {
		if g.Err == nil {
			most = max(most, g.Free)
		}
	}
	for _, g := range r.GPUs {
		if g.Err == nil && float64(g.Free) >= freeEnough*float64(most) {
			return g.Ordinal
		}
	}
	return -1
}

// InUse lists the GPUs before number n that could run nets but have little free memory.
func (r *Report) InUse(n int) (busy []GPUReport) {
	for _, g := range r.GPUs {
		if g.Err == nil && g.Ordinal < n {
			busy = append(busy, g)
		}
	}
	return busy
}

// hidden describes the effect of CUDA_VISIBLE_DEVICES when it may surprise the user.
func (r *Report) hidden() string {
	if r.Visible == "" {
		return ""
	}
	asked := strings.Split(r.Visible, ",")
	if len(r.GPUs) < len(asked) && r.Err == nil {
		return fmt.Sprintf("CUDA_VISIBLE_DEVICES names %d GPUs and the driver finds %d: it stops at the first "+
			"unknown name", len(asked), len(r.GPUs))
	}
	return ""
}

// MarshalJSON writes the report with its errors as texts.
func (r *Report) MarshalJSON() ([]byte, error) {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	type library struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
		CUDA    string `json:"cuda,omitempty"`
		File    string `json:"file,omitempty"`
		Error   string `json:"error,omitempty"`
	}
	type gpu struct {
		Ordinal         int      `json:"ordinal"`
		Name            string   `json:"name"`
		UUID            string   `json:"uuid"`
		Arch            string   `json:"arch"`
		Multiprocessors int      `json:"multiprocessors"`
		Memory          int64    `json:"memory_bytes"`
		Free            int64    `json:"free_bytes,omitempty"`
		Clock           int      `json:"clock_mhz,omitempty"`
		MemoryClock     int      `json:"memory_clock_mhz,omitempty"`
		Power           float64  `json:"power_w,omitempty"`
		PowerLimit      float64  `json:"power_limit_w,omitempty"`
		Temperature     int      `json:"temperature_c,omitempty"`
		Slowed          []string `json:"slowed_by,omitempty"`
		Tried           bool     `json:"tried"`
		Error           string   `json:"error,omitempty"`
	}
	all := struct {
		Built        bool      `json:"built"`
		Hardware     []string  `json:"hardware"`
		KernelModule string    `json:"kernel_module,omitempty"`
		CUDA         string    `json:"cuda,omitempty"`
		Libraries    []library `json:"libraries"`
		GPUs         []gpu     `json:"gpus"`
		Error        string    `json:"error,omitempty"`
		Visible      string    `json:"cuda_visible_devices,omitempty"`
		Chosen       int       `json:"chosen"` // the GPU that "--device auto" takes, −1 for none
	}{r.Built, r.Hardware, r.KernelModule, cudaVersion(r.CUDA), []library{}, []gpu{}, text(r.Err), r.Visible, r.Net()}
	for _, l := range r.Libraries {
		all.Libraries = append(all.Libraries, library{l.Library.String(), l.Version, cudaVersion(l.CUDA), l.File,
			text(l.Err)})
	}
	for _, g := range r.GPUs {
		all.GPUs = append(all.GPUs, gpu{g.Ordinal, g.Name, g.UUID, g.Arch(), g.Multiprocessors, g.Memory, g.Free,
			g.State.Clock, g.State.MemoryClock, g.State.Power, g.State.PowerLimit, g.State.Temperature, g.State.Slowed,
			g.Tried, text(g.Err)})
	}
	return json.Marshal(all)
}

func cudaVersion(v int) string {
	if v == 0 {
		return ""
	}
	return lazy.VersionString(v)
}

// Print writes the report: first the parts that work, then the missing ones with instructions.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-15s%s\n", name, fmt.Sprintf(format, args...))
	}
	var missing []error

	if r.Built {
		line("GPU support", "built in")
	} else {
		line("GPU support", "not in this build")
	}
	for _, h := range r.Hardware {
		line("PCI bus", "NVIDIA GPU %s", h)
	}
	if len(r.Hardware) == 0 {
		line("PCI bus", "no NVIDIA GPU seen")
	}
	if r.KernelModule != "" {
		line("kernel module", "NVIDIA %s", r.KernelModule)
	} else {
		line("kernel module", "no NVIDIA driver runs")
	}
	for _, l := range r.Libraries {
		name := l.Library.String()
		switch {
		case l.Err == nil && l.CUDA != 0:
			line(name, "%s for CUDA %d  %s", l.Version, l.CUDA/1000, l.File)
		case l.Err == nil:
			line(name, "%s  %s", l.Version, l.File)
		case l.Library == lazy.CuDNN:
			what := "missing"
			if l.Version != "" {
				what = l.Version + ", cannot be used"
			}
			line(name, "%s; RNA does without, nets need it", what)
			missing = append(missing, l.Err)
		case l.Library == lazy.NCCL:
			line(name, "missing; one GPU does without, several need it")
			if len(r.GPUs) > 1 {
				missing = append(missing, l.Err)
			}
		case l.Library == lazy.NVML:
			line(name, "missing; clocks, power and other programs' memory are unknown")
			missing = append(missing, l.Err)
		default:
			what := "unusable"
			if errors.As(l.Err, new(*lazy.NotFoundError)) {
				what = "missing"
			}
			line(name, "%s", what)
			missing = append(missing, l.Err)
		}
	}
	if r.Err != nil {
		missing = append(missing, r.Err)
	}
	if r.Visible != "" {
		line("this process", "sees the GPUs of CUDA_VISIBLE_DEVICES=%s", r.Visible)
	}
	if hidden := r.hidden(); hidden != "" {
		missing = append(missing, errors.New(hidden))
	}
	for _, g := range r.GPUs {
		what := fmt.Sprintf("%s, %s, %d multiprocessors, ", g.Name, g.Arch(), g.Multiprocessors)
		switch {
		case g.Err != nil:
			what += fmt.Sprintf("%s, cannot be used", driver.Size(g.Memory))
			missing = append(missing, g.Err)
		case g.Free > 0:
			what += fmt.Sprintf("%s of %s free", driver.Size(g.Free), driver.Size(g.Memory))
		default:
			what += driver.Size(g.Memory)
		}
		if bw := g.Bandwidth(); bw > 0 {
			what += fmt.Sprintf(", %.0f GB/s", bw/1e9)
		}
		if g.Tried {
			what += ", a convolution is right"
		}
		line(fmt.Sprintf("GPU %d", g.Ordinal), "%s", what)
		if state := g.State.String(); state != "" {
			line("", "%s", state)
		}
		if g.UUID != "" {
			line("", "%s", g.UUID)
		}
	}

	if !r.Built {
		missing = append(missing, ErrNotBuilt)
	}
	if len(missing) > 0 {
		b.WriteString("\nmissing or unusable\n")
		for _, err := range missing {
			if e, ok := err.(*lazy.NotFoundError); ok {
				fmt.Fprintf(&b, "- %s\n  %s\n", e.Looked(), e.Install)
				continue
			}
			fmt.Fprintf(&b, "- %v\n", err)
		}
	}
	switch {
	case r.Net() >= 0:
		b.WriteString("\nNets and RNA can run on the GPU.\n")
	case r.Usable():
		b.WriteString("\nRNA can run on the GPU.\n")
	default:
		b.WriteString("\nEverything runs on the CPU.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
