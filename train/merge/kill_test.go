//go:build linux || darwin

package merge

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"onlinerna/internal/files"
	"onlinerna/train/extrapolate"
)

// Environment variables of the child process that merges: the output, the inputs, and the largest allowed file size in
// bytes.
const (
	mergeTo   = "ONLINERNA_MERGE_TO"
	mergeFrom = "ONLINERNA_MERGE_FROM"
	mergeMost = "ONLINERNA_MERGE_MOST"
)

func TestMain(m *testing.M) {
	if os.Getenv(mergeTo) == "" {
		os.Exit(m.Run())
	}
	if most, err := strconv.ParseUint(os.Getenv(mergeMost), 10, 64); err == nil {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	if err := mergeHere(strings.Fields(os.Getenv(mergeFrom)), os.Getenv(mergeTo)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// mergeHere merges by TIES and resumes from existing shards.
func mergeHere(from []string, to string) error {
	var list []*extrapolate.Checkpoint
	for _, p := range from {
		c, err := extrapolate.Open(p, "")
		if err != nil {
			return err
		}
		defer c.Close()
		list = append(list, c)
	}
	s, err := extrapolate.NewSeries(list, extrapolate.Options{Workers: 2})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p, err := New(ctx, s, Options{By: ByTIES, Density: 0.3, Scale: 1, Sign: "sum", Normalize: true, Rescale: "none"})
	if err != nil {
		return err
	}
	o := Output{Path: to, ShardSize: 5000}
	if IsFolder(to) {
		o.Resume = files.IsRegular(filepath.Join(files.Hidden(to, "merge"), planName)) ||
			files.IsRegular(filepath.Join(to, planName))
	}
	_, err = Write(ctx, s, p.Rules, o)
	return err
}

// child is the test binary as a merging process.
func child(t *testing.T, from []string, to, most string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), mergeTo+"="+to, mergeFrom+"="+strings.Join(from, " "), mergeMost+"="+most)
	return c
}

// TestKill kills merges at any moment: the output is missing or complete, and the next run resumes to the same bytes.
func TestKill(t *testing.T) {
	kills := 20
	if testing.Short() {
		kills = 4
	}
	dir := t.TempDir()
	paths := walk(t, dir, 3)
	r := rand.New(rand.NewPCG(5, 6))
	for _, name := range []string{"out", "out.safetensors", "out.pt"} {
		whole := filepath.Join(dir, "whole-"+name)
		began := time.Now()
		if b, err := child(t, paths, whole, "").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		took := time.Since(began)
		to, done := filepath.Join(dir, name), 0
		for range kills {
			c := child(t, paths, to, "")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(r.Float64() * float64(took)))
			c.Process.Kill()
			c.Wait()
			if _, err := os.Stat(to); err == nil {
				done++
				if files.IsRegular(filepath.Join(to, planName)) { // it goes after the folder has its name
					if b, err := child(t, paths, to, "").CombinedOutput(); err != nil {
						t.Fatalf("%s: after a kill before the last step: %v: %s", name, err, b)
					}
				}
				equal(t, to, whole)
				if err := os.RemoveAll(to); err != nil {
					t.Fatal(err)
				}
			}
		}
		if b, err := child(t, paths, to, "").CombinedOutput(); err != nil {
			t.Fatalf("%s: after the kills: %v: %s", name, err, b)
		}
		equal(t, to, whole)
		t.Logf("%s: %d of %d were whole", name, done, kills)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// TestFull makes writes fail at any size, as on a full disk: there is no output, and only finished shards remain.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	paths := walk(t, dir, 3)
	for _, name := range []string{"out", "out.safetensors", "out.pt"} {
		to := filepath.Join(dir, "full", name)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		for _, most := range []int{0, 100, 4000, 12_000, 400_000, 1_200_000} {
			b, err := child(t, paths, to, strconv.Itoa(most)).CombinedOutput()
			if err == nil || !bytes.Contains(b, []byte("too large")) {
				t.Errorf("%s of up to %d bytes: %v: %s", name, most, err, b)
			}
			all, _ := os.ReadDir(filepath.Dir(to))
			for _, e := range all {
				if e.Name() != "."+name+".merge" {
					t.Errorf("%s of up to %d bytes: left behind: %s", name, most, e.Name())
				}
			}
		}
		os.RemoveAll(filepath.Dir(to))
	}
}
