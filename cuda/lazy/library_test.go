package lazy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNewestThatTheDriverTakesFirst(t *testing.T) {
	for _, test := range []struct {
		driver, oldest int
		want           string
	}{
		{0, 0, "libcublas.so.13 libcublas.so.12 libcublas.so.11"},
		{13050, 75, "libcublas.so.13 libcublas.so.12 libcublas.so.11"},
		{13050, 70, "libcublas.so.12 libcublas.so.11 libcublas.so.13"}, // CUDA 13 has no Volta
		{12020, 90, "libcublas.so.12 libcublas.so.11 libcublas.so.13"},
		{11080, 80, "libcublas.so.11 libcublas.so.13 libcublas.so.12"},
	} {
		if got := strings.Join(CuBLAS.names(test.driver, test.oldest), " "); got != test.want {
			t.Errorf("driver %d: %s, want %s", test.driver, got, test.want)
		}
	}
}

func TestFoldersOfTheVariableFirst(t *testing.T) {
	pip := t.TempDir()
	for _, sub := range []string{"nvidia/cublas/lib", "nvidia/cu13/lib"} {
		if err := os.MkdirAll(filepath.Join(pip, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(SearchVariable, "/first:"+pip)
	t.Setenv("CUDA_HOME", "/home/of/cuda")
	t.Setenv("CUDA_PATH", "")
	got := CuBLAS.candidates(12000, 90)
	order := []string{
		"/first/libcublas.so.12", "/first/libcublas.so.13", "/first/lib64/libcublas.so.12",
		pip + "/nvidia/cu13/lib/libcublas.so.12",
		"libcublas.so.12", "/home/of/cuda/lib64/libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so.12",
		"libcublas.so.11", "libcublas.so.13",
	}
	at := -1
	for _, path := range order {
		i := slices.Index(got, path)
		if i <= at {
			t.Errorf("%s is candidate %d, want it after %d: %q", path, i, at, got)
		}
		at = i
	}
	t.Setenv(SearchVariable, "")
	if got := Driver.candidates(0, 0); got[0] != "libcuda.so.1" {
		t.Errorf("the driver is looked for as %q", got)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for _, test := range []struct {
		err  error
		want []string
	}{
		{&NotFoundError{Library: CuBLAS, Names: []string{"libcublas.so.12"}, Folders: []string{"/f"},
			Reasons: []string{"bad ELF"}, Install: "do this"},
			[]string{"no cuBLAS", "libcublas.so.12", "loader's path, /f", "bad ELF", "do this"}},
		{&DriverError{File: "/lib/libcuda.so.1", Version: 11040},
			[]string{"too old", "/lib/libcuda.so.1", "CUDA 11.4", "11.8"}},
		{&DriverError{File: "/l", Code: 100, Name: "CUDA_ERROR_NO_DEVICE"},
			[]string{"CUDA_ERROR_NO_DEVICE (100)", "--gpus all"}},
		{&DriverError{File: "/l", Code: 803, Name: "X"}, []string{"different versions", "restart"}},
		{&DriverError{File: "/l", Code: 999, Name: "X"}, []string{"999", "reinstall"}},
	} {
		for _, want := range test.want {
			if !strings.Contains(test.err.Error(), want) {
				t.Errorf("%q lacks %q", test.err, want)
			}
		}
	}
}

func TestInstall(t *testing.T) {
	for _, test := range []struct {
		library      Library
		driver       int
		distribution string
		want         string
	}{
		{Driver, 0, "ubuntu", "ubuntu-drivers install"},
		{Driver, 0, "debian", "apt install nvidia-driver"},
		{Driver, 0, "fedora", "dnf install akmod-nvidia"},
		{Driver, 0, "arch", "pacman -S nvidia"},
		{Driver, 0, "", "NVIDIA's driver downloads"},
		{CuBLAS, 0, "", "pip install --target ~/cuda-libs nvidia-cublas && export RNA_CUDA_LIBS=~/cuda-libs"},
		{CuBLAS, 12040, "", "nvidia-cublas-cu12 "},
		{CuDNN, 11080, "", "nvidia-cudnn-cu11 "},
		{CuDNN, 13000, "", "nvidia-cudnn-cu13 "},
		{NVRTC, 13000, "", "nvidia-cuda-nvrtc "},
		{NCCL, 12080, "", "nvidia-nccl-cu12 "},
		{NCCL, 0, "", "nvidia-nccl-cu13 "},
	} {
		if got := test.library.install(test.driver, test.distribution); !strings.Contains(got, test.want) {
			t.Errorf("%v for driver %d on %q: %q lacks %q", test.library, test.driver, test.distribution, got,
				test.want)
		}
	}
	file := filepath.Join(t.TempDir(), "os-release")
	if err := os.WriteFile(file, []byte("NAME=x\nVERSION_ID=\"1\"\nID=\"ubuntu\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := distribution(file); got != "ubuntu" {
		t.Errorf("distribution %q, want ubuntu", got)
	}
	if got := distribution(file + ".none"); got != "" {
		t.Errorf("distribution %q without a file", got)
	}
}
