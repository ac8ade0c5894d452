package lazy

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// Install returns a phrase that says how to install l for a driver of this CUDA version, 0 if unknown.
func (l Library) Install(driver int) string {
	return l.install(driver, distribution("/etc/os-release"))
}

func (l Library) install(driver int, distribution string) string {
	if l == NVML {
		return "it comes with NVIDIA's driver; a container needs NVIDIA_DRIVER_CAPABILITIES=compute,utility"
	}
	if l == Driver {
		var command string
		switch distribution {
		case "ubuntu":
			command = "sudo ubuntu-drivers install"
		case "debian":
			command = "sudo apt install nvidia-driver (from contrib and non-free)"
		case "fedora":
			command = "sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda (from RPM Fusion)"
		case "arch":
			command = "sudo pacman -S nvidia"
		default:
			command = "see NVIDIA's driver downloads"
		}
		return fmt.Sprintf("on a machine with an NVIDIA GPU install the driver: %s; in a container: docker run "+
			"--gpus all", command)
	}
	pkg := map[Library]string{CuBLAS: "nvidia-cublas", NVRTC: "nvidia-cuda-nvrtc", CuDNN: "nvidia-cudnn",
		NCCL: "nvidia-nccl"}[l]
	// The packages for CUDA 13 have no suffix, except those of cuDNN and NCCL.
	switch {
	case driver != 0 && driver < 13000:
		pkg += fmt.Sprintf("-cu%d", driver/1000)
	case l == CuDNN || l == NCCL:
		pkg += "-cu13"
	}
	return fmt.Sprintf("install it with CUDA, or by: pip install --target ~/cuda-libs %s && export %s=~/cuda-libs", pkg,
		SearchVariable)
}

// distribution returns the ID of an os-release file, empty without one.
func distribution(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if id, ok := strings.CutPrefix(s.Text(), "ID="); ok {
			return strings.Trim(id, `"'`)
		}
	}
	return ""
}
