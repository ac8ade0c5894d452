//go:build gpu && cgo

// Package nvrtc compiles CUDA C++ for a GPU and caches the result. It uses NVRTC and, to load modules, package driver.
package nvrtc

// #cgo CFLAGS: -I${SRCDIR}/../include
// #include <nvrtc.h>
// #include <stdlib.h>
import "C"

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/internal/cache"
	"onlinerna/cuda/lazy"
)

// A CompileError reports a source that does not compile, with the compiler's log.
type CompileError struct {
	Name string // the source's name
	Arch string
	Log  string
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("cuda: %s does not compile for %s:\n%s", e.Name, e.Arch, strings.TrimSpace(e.Log))
}

// Compile compiles CUDA C++ for a context's GPU and loads it. Messages use name for the source. NVRTC gets options in
// addition to -std=c++17 and the architecture. The compiled code is kept in [driver.Options].KernelCache under a hash
// of all its inputs. A missing NVRTC is a [*lazy.NotFoundError], a source that does not compile a [*CompileError].
func Compile(c *driver.Context, name, source string, options ...string) (*driver.Module, error) {
	p, err := newProgram(c.Info(), name, source, options)
	if err != nil {
		return nil, err
	}
	folder := cache.Folder(c.Options().KernelCache)
	image, cached := p.cached(folder)
	if !cached { // ranks of a machine compile the same code at the same time: only one of them does
		defer cache.Alone(folder, p.file())()
		image, cached = p.cached(folder)
	}
	for {
		if !cached {
			if image, err = p.compile(); err != nil {
				return nil, err
			}
			p.keep(folder, image)
		}
		m, err := c.Load(name, image)
		if cached && errors.As(err, new(*driver.Error)) && !errors.Is(err, driver.ErrLost) {
			cached = false // the driver refuses the cached code: compile it once more
			continue
		}
		if err == nil {
			m.Source, m.Options = source, options
		}
		return m, err
	}
}

// Image compiles CUDA C++ for an architecture, such as 90, and needs no GPU. compiler names the NVRTC version.
func Image(arch int, name, source string, options ...string) (image []byte, compiler string, err error) {
	p, err := newProgram(driver.Info{Major: arch / 10, Minor: arch % 10}, name, source, options)
	if err != nil {
		return nil, "", err
	}
	image, err = p.compile()
	return image, p.compiler, err
}

// PTX compiles CUDA C++ to PTX for an architecture, such as 90.
func PTX(arch int, name, source string, options ...string) (string, error) {
	p, err := newProgram(driver.Info{Major: arch / 10, Minor: arch % 10}, name, source, options)
	if err != nil {
		return "", err
	}
	p.arch = fmt.Sprintf("compute_%d", arch)
	p.options[0] = "-arch=" + p.arch
	image, err := p.compile()
	return strings.TrimRight(string(image), "\x00"), err
}

// Version returns the version of the loaded NVRTC.
func Version() (string, error) {
	var major, minor C.int
	err := nvrtcError("nvrtcVersion", C.nvrtcVersion(&major, &minor), "")
	return fmt.Sprintf("%d.%d", major, minor), err
}

// A program is a source with its compile options.
type program struct {
	name, source string
	arch         string // sm_90, or compute_90 for the driver to translate
	options      []string
	compiler     string // distinguishes versions of NVRTC
}

// newProgram loads NVRTC and chooses the architecture.
func newProgram(gpu driver.Info, name, source string, options []string) (*program, error) {
	if err := lazy.NVRTC.Load(); err != nil {
		return nil, err
	}
	p := &program{name: name, source: source}
	version, err := Version()
	if err != nil {
		return nil, err
	}
	file := lazy.NVRTC.File()
	p.compiler = version + " " + file
	if stat, err := os.Stat(file); err == nil {
		p.compiler += fmt.Sprintf(" %d %d", stat.Size(), stat.ModTime().UnixNano())
	}
	known, err := knownArchs()
	if err != nil {
		return nil, err
	}
	if p.arch, err = chooseArch(10*gpu.Major+gpu.Minor, known); err != nil {
		return nil, fmt.Errorf("cuda: NVRTC %s cannot compile for %v: %w; %s", version, gpu, err,
			lazy.NVRTC.Install(12000))
	}
	// Without -default-device NVRTC 12 takes lambdas for host code.
	p.options = append([]string{"-arch=" + p.arch, "-std=c++17", "-default-device"}, options...)
	return p, nil
}

// knownArchs lists the architectures that this NVRTC supports, in order: 75, 80, …
func knownArchs() ([]int, error) {
	var n C.int
	if err := nvrtcError("nvrtcGetNumSupportedArchs", C.nvrtcGetNumSupportedArchs(&n), ""); err != nil || n <= 0 {
		return nil, err
	}
	all := make([]C.int, n)
	if err := nvrtcError("nvrtcGetSupportedArchs", C.nvrtcGetSupportedArchs(&all[0]), ""); err != nil {
		return nil, err
	}
	known := make([]int, n)
	for i, a := range all {
		known[i] = int(a)
	}
	slices.Sort(known)
	return known, nil
}

// chooseArch chooses the target for a GPU: its own architecture, an older one of the same generation, whose code it
// runs, too, or the newest virtual one if the GPU is newer than the compiler.
func chooseArch(gpu int, known []int) (string, error) {
	best := 0
	for _, k := range known {
		if k <= gpu {
			best = k
		}
	}
	switch {
	case best == 0 && len(known) > 0:
		return "", fmt.Errorf("its oldest architecture is sm_%d", known[0])
	case best == 0:
		return "", errors.New("it lists no architectures")
	case best/10 == gpu/10:
		return fmt.Sprintf("sm_%d", best), nil
	}
	return fmt.Sprintf("compute_%d", best), nil
}

func (p *program) compile() ([]byte, error) {
	source, name := C.CString(p.source), C.CString(p.name)
	defer C.free(unsafe.Pointer(source))
	defer C.free(unsafe.Pointer(name))
	var prog C.nvrtcProgram
	if err := nvrtcError("nvrtcCreateProgram", C.nvrtcCreateProgram(&prog, source, name, 0, nil, nil), p.name); err !=
		nil {
		return nil, err
	}
	defer C.nvrtcDestroyProgram(&prog)
	options := make([]*C.char, len(p.options))
	for i, o := range p.options {
		options[i] = C.CString(o)
		defer C.free(unsafe.Pointer(options[i]))
	}
	code := C.nvrtcCompileProgram(prog, C.int(len(options)), &options[0])
	if code == C.NVRTC_ERROR_COMPILATION {
		return nil, &CompileError{Name: p.name, Arch: p.arch, Log: compileLog(prog)}
	}
	detail := fmt.Sprintf("%s, options %s", p.name, strings.Join(p.options, " "))
	if err := nvrtcError("nvrtcCompileProgram", code, detail); err != nil {
		if log := strings.TrimSpace(compileLog(prog)); log != "" {
			err = fmt.Errorf("%w\n%s", err, log)
		}
		return nil, err
	}
	var n C.size_t
	if strings.HasPrefix(p.arch, "compute_") {
		if err := nvrtcError("nvrtcGetPTXSize", C.nvrtcGetPTXSize(prog, &n), p.name); err != nil {
			return nil, err
		}
		image := make([]byte, n+1)
		return image[:n], nvrtcError("nvrtcGetPTX", C.nvrtcGetPTX(prog, (*C.char)(unsafe.Pointer(&image[0]))), p.name)
	}
	if err := nvrtcError("nvrtcGetCUBINSize", C.nvrtcGetCUBINSize(prog, &n), p.name); err != nil {
		return nil, err
	}
	image := make([]byte, n+1)
	return image[:n], nvrtcError("nvrtcGetCUBIN", C.nvrtcGetCUBIN(prog, (*C.char)(unsafe.Pointer(&image[0]))), p.name)
}

func compileLog(prog C.nvrtcProgram) string {
	var n C.size_t
	if C.nvrtcGetProgramLogSize(prog, &n) != C.NVRTC_SUCCESS || n == 0 {
		return ""
	}
	log := make([]byte, n)
	if C.nvrtcGetProgramLog(prog, (*C.char)(unsafe.Pointer(&log[0]))) != C.NVRTC_SUCCESS {
		return ""
	}
	return strings.TrimRight(string(log), "\x00")
}

var nvrtcNames = map[C.nvrtcResult]string{
	C.NVRTC_ERROR_OUT_OF_MEMORY:             "NVRTC_ERROR_OUT_OF_MEMORY",
	C.NVRTC_ERROR_PROGRAM_CREATION_FAILURE:  "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
	C.NVRTC_ERROR_INVALID_INPUT:             "NVRTC_ERROR_INVALID_INPUT",
	C.NVRTC_ERROR_INVALID_PROGRAM:           "NVRTC_ERROR_INVALID_PROGRAM",
	C.NVRTC_ERROR_INVALID_OPTION:            "NVRTC_ERROR_INVALID_OPTION",
	C.NVRTC_ERROR_COMPILATION:               "NVRTC_ERROR_COMPILATION",
	C.NVRTC_ERROR_BUILTIN_OPERATION_FAILURE: "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
	C.NVRTC_ERROR_INTERNAL_ERROR:            "NVRTC_ERROR_INTERNAL_ERROR",
}

func nvrtcError(call string, code C.nvrtcResult, detail string) error {
	if code == C.NVRTC_SUCCESS {
		return nil
	}
	name := nvrtcNames[code]
	if name == "" {
		name = "NVRTC_ERROR"
	}
	e := &driver.Error{Call: call, Detail: detail, Code: int(code), Name: name}
	if code == C.NVRTC_ERROR_BUILTIN_OPERATION_FAILURE {
		e.Text = "libnvrtc-builtins of the same version must lie beside " + lazy.NVRTC.File()
	}
	return e
}

// file is the cached image's name: a hash of all inputs.
func (p *program) file() string {
	return cache.Digest(append([]string{p.name, p.source, p.compiler}, p.options...)...) + ".cubin"
}

// cached reads the compiled image. A leading checksum detects damaged files, which count as missing.
func (p *program) cached(folder string) ([]byte, bool) {
	data, ok := cache.Read(folder, p.file())
	if !ok || len(data) <= sha256.Size {
		return nil, false
	}
	image := data[sha256.Size:]
	if sum := sha256.Sum256(image); string(sum[:]) != string(data[:sha256.Size]) {
		return nil, false
	}
	return image, true
}

// keep writes the compiled image. Errors are ignored: the next run compiles again.
func (p *program) keep(folder string, image []byte) {
	sum := sha256.Sum256(image)
	cache.Write(folder, p.file(), append(sum[:], image...))
}
