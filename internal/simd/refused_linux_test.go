//go:build amd64 && !purego

package simd

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// refuse is the environment variable of TestChild: the error of requests for AMX, or 0.
const refuse = "ONLINERNA_REFUSE"

// A process whose requests for AMX fail by a seccomp filter, as in some containers, takes the level below and says why.
func TestRefused(t *testing.T) {
	if own.lacks == errNoAMX {
		t.Skip(errNoAMX)
	}
	for _, e := range []syscall.Errno{syscall.EPERM, syscall.EINVAL, syscall.ENOSYS} {
		why := fmt.Errorf("the operating system does not permit AMX: %w", e)
		p := own
		p.lacks = why
		best, _ := p.choose("")
		refused := "RNA_CPU: level amx: " + why.Error()
		for value, fault := range map[string]string{"": "<nil>", "amx": refused, "avx2": "<nil>"} {
			c := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
			c.Env = append(os.Environ(), refuse+"="+strconv.Itoa(int(e)), Variable+"="+value)
			out, err := c.CombinedOutput()
			level := best
			if value == "avx2" {
				level = AVX2
			}
			want := fmt.Sprintf("level %v, error %s, summary %s\n", level, fault, p.summary(level))
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%v, %s=%s: %v, %s; want %s", e, Variable, value, err, out, want)
			}
		}
	}
}

// TestChild runs as a process of TestRefused. It installs the filter, and runs this program again: the filter stays.
func TestChild(t *testing.T) {
	switch e := os.Getenv(refuse); e {
	case "":
		t.Skip("only for TestRefused")
	case "0":
		fmt.Printf("level %v, error %v, summary %s\n", Default(), Err(), Summary())
	default:
		number, err := strconv.Atoi(e)
		if err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread() // the filter is the thread's
		if err := filter(uint32(number)); err != nil {
			t.Skip("no seccomp: ", err)
		}
		os.Setenv(refuse, "0")
		t.Fatal(syscall.Exec(os.Args[0], os.Args, os.Environ()))
	}
}

// filter makes requests for AMX by this thread and its children fail with an error number.
func filter(errno uint32) error {
	type instruction struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}
	const (
		load, equal, end        = 0x20, 0x15, 0x06 // BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
		call, argument          = 0, 16            // offsets in struct seccomp_data
		allow, fail             = 0x7fff0000, 0x00050000
		setNoNewPrivs, modeCode = 38, 2 // PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER
		setSeccomp              = 22    // PR_SET_SECCOMP
	)
	code := []instruction{
		{load, 0, 0, call},
		{equal, 0, 3, syscall.SYS_ARCH_PRCTL},
		{load, 0, 0, argument},
		{equal, 0, 1, 0x1023},
		{end, 0, 0, fail | errno},
		{end, 0, 0, allow},
	}
	program := struct {
		n    uint16
		code *instruction
	}{uint16(len(code)), &code[0]}
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, setNoNewPrivs, 1, 0); e != 0 {
		return e
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, setSeccomp, modeCode, uintptr(unsafe.Pointer(&program))); e != 0 {
		return e
	}
	return nil
}
