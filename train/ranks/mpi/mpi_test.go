//go:build mpi && linux

package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebitengine/purego"

	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

// roleVar names the environment variable with the role of a rank that a test starts.
const roleVar = "RNA_TEST_RANK"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		Exit(rank(role))
	}
	os.Exit(m.Run())
}

// rank is a rank's program.
func rank(role string) int {
	w, err := ranks.Detect(os.LookupEnv)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	e, err := Open(w, time.Minute)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if role == "closed" {
		return closed(e)
	}
	o := ranks.Options{World: w}
	if role == "stall" {
		o.Timeout = 2 * time.Second
	}
	g, err := ranks.Join(e, o)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if err := roles[role](g); err != nil {
		g.Abort(err)
	}
	if err := g.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// closed prints the results of operations on a closed engine.
func closed(e ranks.Engine) int {
	time.AfterFunc(20*time.Second, func() {
		fmt.Println("an operation hangs")
		os.Exit(1)
	})
	first := e.Close()
	sum, second := e.Reduce32([]float32{1}, ranks.Sum).Wait(0), e.Close()
	if first != nil || !errors.Is(sum, errClosed) || !errors.Is(second, errClosed) {
		fmt.Println("first", first, "sum", sum, "second", second)
		return 1
	}
	fmt.Println("refused")
	return 0
}

var roles = map[string]func(*ranks.Group) error{
	"suite": func(g *ranks.Group) error {
		if err := rankstest.Suite(g); err != nil {
			return err
		}
		if g.First() {
			fmt.Printf("passed: %v\n", g)
		}
		return nil
	},
	"abort": func(g *ranks.Group) error {
		if g.Rank() == 1 {
			return errors.New("the disk is full")
		}
		return g.Barrier()
	},
	"die": func(g *ranks.Group) error {
		if g.Rank() == 1 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return g.Barrier()
	},
	"panic": func(g *ranks.Group) error { // Go still handles faults and signals itself
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		<-c
		var p *int
		defer func() {
			if r := recover(); r == nil || g.Barrier() != nil {
				fmt.Println("not recovered")
			} else if g.First() {
				fmt.Println("recovered")
			}
		}()
		*p = 1
		return nil
	},
	"exit": func(*ranks.Group) error { // C's exit handlers run
		atExit, err := purego.Dlsym(purego.RTLD_DEFAULT, "__cxa_atexit")
		if err != nil {
			return err
		}
		puts, err := purego.Dlsym(purego.RTLD_DEFAULT, "puts")
		purego.SyscallN(atExit, puts, pointer(goodbye), 0)
		return err
	},
	"stall": func(g *ranks.Group) error {
		g.At(ranks.At{Epoch: 1, Step: 3})
		if g.Rank() == 1 {
			time.Sleep(time.Minute)
		}
		return g.Barrier()
	},
}

var goodbye = []byte("goodbye\x00")

// launchers are this machine's commands that start ranks.
var launchers = []string{"mpirun.openmpi", "mpirun.mpich"}

// launch runs n ranks of this test.
func launch(t *testing.T, launcher string, n int, role string) (out string, took time.Duration, err error) {
	t.Helper()
	if _, err := exec.LookPath(launcher); err != nil {
		if os.Getenv("ONLINERNA_MPI") == "require" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	args := []string{"-n", fmt.Sprint(n), os.Args[0]}
	if launcher == "mpirun.openmpi" {
		args = append([]string{"--allow-run-as-root", "--oversubscribe"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), launcher, args...)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	from := time.Now()
	err = cmd.Run()
	return b.String(), time.Since(from), err
}

func each(t *testing.T, f func(t *testing.T, launcher string)) {
	for _, l := range launchers {
		t.Run(l, func(t *testing.T) { f(t, l) })
	}
}

func TestSuite(t *testing.T) {
	each(t, func(t *testing.T, launcher string) {
		for _, n := range []int{1, 2, 3, 4} {
			out, took, err := launch(t, launcher, n, "suite")
			if err != nil || !strings.Contains(out, "passed: ") {
				t.Fatalf("%d ranks: %v\n%s", n, err, out)
			}
			t.Logf("%d ranks, %.1f s: %s", n, took.Seconds(), strings.TrimSpace(out))
		}
	})
}

func TestAbortEndsAll(t *testing.T) {
	each(t, func(t *testing.T, launcher string) {
		for role, want := range map[string]string{"abort": "the disk is full", "die": ""} {
			out, took, err := launch(t, launcher, 3, role)
			if err == nil || !strings.Contains(out, want) || took > 20*time.Second {
				t.Errorf("%s: %v after %v\n%s", role, err, took, out)
			}
		}
	})
}

func TestTimeoutNamesWhoIsMissing(t *testing.T) {
	each(t, func(t *testing.T, launcher string) {
		out, took, err := launch(t, launcher, 3, "stall")
		host, _ := os.Hostname()
		if err == nil || !strings.Contains(out, "epoch 1, step 3") ||
			!strings.Contains(out, "missing: rank 1 on "+host+"\n") || took > 20*time.Second {
			t.Errorf("%v after %v\n%s", err, took, out)
		}
	})
}

func TestGoKeepsItsSignals(t *testing.T) {
	each(t, func(t *testing.T, launcher string) {
		if out, _, err := launch(t, launcher, 2, "panic"); err != nil || !strings.Contains(out, "recovered") ||
			strings.Contains(out, "not ") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func TestEndsAsC(t *testing.T) {
	each(t, func(t *testing.T, launcher string) {
		if out, _, err := launch(t, launcher, 2, "exit"); err != nil || strings.Count(out, "goodbye") != 2 {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// Calls on a closed engine return an error and do not hang.
func TestClosed(t *testing.T) {
	each(t, func(t *testing.T, launcher string) {
		if out, _, err := launch(t, launcher, 2, "closed"); err != nil || strings.Count(out, "refused") != 2 {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func TestNoLibrary(t *testing.T) {
	t.Setenv(LibraryVar, "/nowhere/libmpi.so")
	if _, err := Open(ranks.World{Implementation: "mpich"}, time.Minute); err == nil ||
		!strings.Contains(err.Error(), "install mpich") || !strings.Contains(err.Error(), "/nowhere/libmpi.so") {
		t.Errorf("error %v", err)
	}
}
