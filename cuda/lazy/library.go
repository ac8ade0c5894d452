package lazy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SearchVariable names the environment variable with a colon-separated list of folders that are searched first. A
// folder may contain the libraries, lib64 or lib with them, or packages installed by pip (nvidia/*/lib: name the
// site-packages folder).
const SearchVariable = "RNA_CUDA_LIBS"

// OldestDriver is the oldest CUDA version whose driver works: 1000·major + 10·minor.
const OldestDriver = 11080

// A Library is a library that is loaded at run time.
type Library int

const (
	Driver Library = iota // libcuda, part of NVIDIA's driver
	CuBLAS
	NVRTC // the run-time compiler of CUDA C++
	CuDNN
	NCCL // sums and copies between the GPUs of several processes
	NVML // the state of GPUs: memory, clocks, power; part of NVIDIA's driver
	numLibraries
)

// Libraries lists all libraries.
var Libraries = []Library{Driver, CuBLAS, NVRTC, CuDNN, NCCL, NVML}

func (l Library) String() string {
	return [...]string{"NVIDIA driver", "cuBLAS", "NVRTC", "cuDNN", "NCCL", "NVML"}[l]
}

// names lists the file names of l, best first, for a driver of this CUDA version, 0 if unknown. A library that is newer
// than the driver comes last, because it may not work. So does CUDA 13 if a GPU is older than compute capability 7.5;
// oldest is 10 times the lowest one, 0 if unknown.
func (l Library) names(driver, oldest int) []string {
	type release struct {
		cuda int
		file string
	}
	var all []release
	switch l {
	case Driver:
		return []string{"libcuda.so.1"}
	case CuBLAS:
		all = []release{{13, "libcublas.so.13"}, {12, "libcublas.so.12"}, {11, "libcublas.so.11"}}
	case NVRTC:
		all = []release{{13, "libnvrtc.so.13"}, {12, "libnvrtc.so.12"}, {11, "libnvrtc.so.11.2"}}
	case CuDNN:
		return []string{"libcudnn.so.9", "libcudnn.so.8"} // cuDNN 8 is loaded for its version alone
	case NCCL:
		return []string{"libnccl.so.2"}
	case NVML:
		return []string{"libnvidia-ml.so.1"}
	}
	var names, newer []string
	for _, r := range all {
		if driver != 0 && r.cuda > driver/1000 || oldest != 0 && oldest < 75 && r.cuda >= 13 {
			newer = append(newer, r.file)
		} else {
			names = append(names, r.file)
		}
	}
	return append(names, newer...)
}

// folders lists the folders to search: first those of the environment variable, then, after the loader's own path, the
// usual ones.
func (l Library) folders() (first, usual []string) {
	for _, f := range filepath.SplitList(os.Getenv(SearchVariable)) {
		if f == "" {
			continue
		}
		first = append(first, f, filepath.Join(f, "lib64"), filepath.Join(f, "lib"))
		pip, _ := filepath.Glob(filepath.Join(f, "nvidia", "*", "lib")) // the pattern is well-formed
		first = append(first, pip...)
	}
	if l == Driver || l == NVML {
		return first, []string{"/usr/lib/wsl/lib"}
	}
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if f := os.Getenv(v); f != "" {
			usual = append(usual, filepath.Join(f, "lib64"), filepath.Join(f, "lib"))
		}
	}
	usual = append(usual, "/usr/local/cuda/lib64", "/opt/cuda/lib64")
	versions, _ := filepath.Glob("/usr/local/cuda-*/lib64")
	slices.Reverse(versions) // newest first
	return first, append(usual, versions...)
}

// candidates lists the files to try in turn. The loader searches for a name without a slash.
func (l Library) candidates(driver, oldest int) []string {
	names := l.names(driver, oldest)
	first, usual := l.folders()
	var paths []string
	for _, f := range first {
		for _, n := range names {
			paths = append(paths, filepath.Join(f, n))
		}
	}
	for _, n := range names {
		paths = append(paths, n)
		for _, f := range usual {
			paths = append(paths, filepath.Join(f, n))
		}
	}
	return paths
}

// A NotFoundError reports a library that could not be loaded: the files and folders tried, and how to install it.
type NotFoundError struct {
	Library Library
	Names   []string // file names
	Folders []string // searched in addition to the loader's path
	Reasons []string // why existing files did not load
	Install string   // how to install it
}

func (e *NotFoundError) Error() string { return e.Looked() + "; " + e.Install }

// Looked is the error without the installation advice.
func (e *NotFoundError) Looked() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no %s: looked for %s in the loader's path", e.Library, strings.Join(e.Names, ", "))
	for _, f := range e.Folders {
		fmt.Fprintf(&b, ", %s", f)
	}
	for _, r := range e.Reasons {
		fmt.Fprintf(&b, "; %s", r)
	}
	return b.String()
}

// A DriverError reports an installed driver that cannot be used.
type DriverError struct {
	File    string // of the driver
	Code    int    // result of cuInit, 0 for success
	Name    string // of the code
	Version int    // CUDA version that the driver supports, 1000·major + 10·minor; 0 when unknown
}

func (e *DriverError) Error() string {
	if e.Code == 0 {
		return fmt.Sprintf("NVIDIA driver too old: %s supports CUDA %s, needed is %s or newer; %s",
			e.File, VersionString(e.Version), VersionString(OldestDriver), Driver.Install(0))
	}
	what := "restart the machine, or reinstall the driver"
	switch e.Code {
	case 100: // CUDA_ERROR_NO_DEVICE
		what = "the driver sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES, and start a container with " +
			"--gpus all"
	case 803: // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
		what = "the driver's library and its kernel module have different versions: restart the machine"
	case 804: // CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
		what = "the compatibility library does not support this GPU: remove it from the loader's path"
	}
	return fmt.Sprintf("NVIDIA driver unusable: cuInit of %s gives %s (%d); %s", e.File, e.Name, e.Code, what)
}

// VersionString writes CUDA's 12090 as 12.9.
func VersionString(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
