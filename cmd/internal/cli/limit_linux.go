package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitVar tells a process that its parent reads its messages.
const limitVar = "RNA_LIMITED"

// leastSpace is the address space that Go's runtime reserves, and some for a command.
const leastSpace = 1 << 30

// WithinLimit runs the program as a child if the address space is limited, as by ulimit -v: where memory ends, Go's
// runtime prints the stacks of all goroutines, and nothing in the process can prevent it. The parent prints one line in
// their place. done is false in a process that is to do the work itself.
func WithinLimit() (status int, done bool) {
	var limit unix.Rlimit
	if os.Getenv(limitVar) != "" {
		os.Unsetenv(limitVar)
		return 0, false
	}
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return 0, false
	}
	if limit.Cur < leastSpace {
		fmt.Fprintf(os.Stderr, "rna: %s\n", tooSmall(limit.Cur))
		return 1, true
	}
	self, err := os.Executable()
	if err != nil {
		return 0, false
	}
	runtime.LockOSThread() // the child ends with this thread
	child := exec.Command(self, os.Args[1:]...)
	child.Env = append(os.Environ(), limitVar+"=1")
	child.Stdin, child.Stdout = os.Stdin, os.Stdout
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	messages, err := child.StderrPipe()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, StopSignals()...)
	if err == nil {
		err = child.Start()
	}
	if err != nil { // too little for two processes
		signal.Reset()
		return 0, false
	}
	go func() {
		for s := range signals {
			child.Process.Signal(s)
		}
	}()
	crash := passOn(os.Stderr, messages)
	err = child.Wait()
	if outOfMemory.MatchString(crash) {
		fmt.Fprintf(os.Stderr, "rna: out of memory: %s\n", tooSmall(limit.Cur))
		return 1, true
	}
	io.WriteString(os.Stderr, crash)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, true
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode(), true
	case errors.As(err, &exit):
		return 128 + int(exit.Sys().(syscall.WaitStatus).Signal()), true
	}
	return 1, true
}

func tooSmall(limit uint64) string {
	return fmt.Sprintf("the limit of the address space, %.2f GB (ulimit -v), is too small: raise it, or give the command "+
		"less to do", float64(limit)/1e9)
}

var (
	// crashes are beginnings of the first line that Go's runtime prints when it ends a process.
	crashes = []string{"fatal error: ", "runtime: ", "runtime/cgo: ", "panic: ", "SIGABRT", "SIGSEGV", "unexpected fault"}
	// outOfMemory matches the runtime's messages about an address space that is used up.
	outOfMemory = regexp.MustCompile(`out of memory|cannot allocate memory|failed to reserve|pthread_create failed|` +
		`failed to create new OS thread|cannot map|newosproc|limit on virtual memory`)
)

// passOn copies lines, up to the first of a crash, and returns the rest.
func passOn(to io.Writer, from io.Reader) string {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadString('\n')
		for _, c := range crashes {
			if strings.HasPrefix(line, c) {
				rest, _ := io.ReadAll(io.LimitReader(r, 1<<20))
				io.Copy(io.Discard, r)
				return line + string(rest)
			}
		}
		io.WriteString(to, line)
		if err != nil {
			return ""
		}
	}
}
