//go:build gpu && cgo

package cuda

// #include <nvrtc.h>
import "C"

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"onlinerna/cuda/lazy"
)

// A CompileError says that a source does not compile, with the compiler's log.
type CompileError struct {
	Name string // of the source
	Arch string
	Log  string
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("cuda: %s does not compile for %s:\n%s", e.Name, e.Arch, strings.TrimSpace(e.Log))
}

// A program is a source and how it is compiled.
type program struct {
	name, source string
	arch         string // sm_90, or compute_90 for the driver to translate
	options      []string
	compiler     string // what tells one NVRTC from another
}

// newProgram loads NVRTC and chooses the architecture.
func newProgram(gpu Info, name, source string, options []string) (*program, error) {
	if err := lazy.NVRTC.Load(); err != nil {
		return nil, err
	}
	p := &program{name: name, source: source}
	var major, minor C.int
	if err := nvrtcError("nvrtcVersion", C.nvrtcVersion(&major, &minor), ""); err != nil {
		return nil, err
	}
	version := fmt.Sprintf("%d.%d", major, minor)
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
		return nil, fmt.Errorf("cuda: NVRTC %s cannot compile for %v: %w; %s", version, gpu, err, lazy.NVRTC.Install(12000))
	}
	p.options = append([]string{"-arch=" + p.arch, "-std=c++17"}, options...)
	return p, nil
}

// knownArchs lists the architectures that NVRTC compiles for, in order: 75, 80, …
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

// chooseArch chooses what to compile for a GPU: its own architecture, an older one of the same generation, which it
// runs too, or the newest virtual one when the GPU is newer than the compiler.
func chooseArch(gpu int, known []int) (string, error) {
	best := 0
	for _, k := range known {
		if k <= gpu {
			best = k
		}
	}
	switch {
	case best == 0 && len(known) > 0:
		return "", fmt.Errorf("it starts at sm_%d", known[0])
	case best == 0:
		return "", errors.New("it names no architecture")
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
	if err := nvrtcError("nvrtcCreateProgram", C.nvrtcCreateProgram(&prog, source, name, 0, nil, nil), p.name); err != nil {
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
	e := &Error{Call: call, Detail: detail, Code: int(code), Name: name}
	if code == C.NVRTC_ERROR_BUILTIN_OPERATION_FAILURE {
		e.Text = "libnvrtc-builtins of the same version must lie beside " + lazy.NVRTC.File()
	}
	return e
}

// kernelFolder is where compiled kernels are kept, empty when there is no such place.
func kernelFolder(option string) string {
	if option != "" {
		return option
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(user, "onlinerna", "cuda")
}

// file is the cached image's name: a hash of all that went into it.
func (p *program) file() string {
	return digest(append([]string{p.name, p.source, p.compiler}, p.options...)...) + ".cubin"
}

// digest is a hash of strings, as a part of a file's name.
func digest(all ...string) string {
	h := sha256.New()
	for _, s := range all {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}

// cached reads the compiled image. Its checksum is in front: a damaged file is as good as none.
func (p *program) cached(folder string) ([]byte, bool) {
	if folder == "" {
		return nil, false
	}
	data, err := os.ReadFile(filepath.Join(folder, p.file()))
	if err != nil || len(data) <= sha256.Size {
		return nil, false
	}
	image := data[sha256.Size:]
	if sum := sha256.Sum256(image); string(sum[:]) != string(data[:sha256.Size]) {
		return nil, false
	}
	return image, true
}

// keep writes the compiled image. It is only a cache: where it cannot be written the next run compiles again.
func (p *program) keep(folder string, image []byte) {
	sum := sha256.Sum256(image)
	writeCache(folder, p.file(), append(sum[:], image...))
}

// writeCache writes a file of the cache, all of it or nothing. No folder means no cache, and an error is none.
func writeCache(folder, name string, content []byte) {
	if folder == "" || os.MkdirAll(folder, 0o755) != nil {
		return
	}
	f, err := os.CreateTemp(folder, "new-*")
	if err != nil {
		return
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(folder, name))
	}
	if err != nil {
		os.Remove(f.Name())
	}
}
