//go:build soak && linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Numbers of the soak test, from environment variables of these names.
func soakNumber(t *testing.T, name string, or int) int {
	text := os.Getenv(name)
	if text == "" {
		return or
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// soakRun is a short run with a window, averages and checkpoints within epochs.
func soakRun(out string) []string {
	return []string{"train", "--epochs", "4", "--limit-batches", "7", "--limit-val", "2", "--batch", "8", "--rna-start",
		"1", "--rna-window", "2", "--averages", "2", "--ema", "4",
		"--checkpoint-every", "4steps", "--keep-every", "1", "--threads", "1", "-q", "-o", out}
}

// soak is a test run on one machine: its actions are a function of the seed.
type soak struct {
	*testing.T
	*rand.Rand
	want map[string]string // of an undisturbed run
	took time.Duration
}

// ends returns the files of a finished run that must have equal bits.
func (s *soak) ends(out string) map[string]string {
	all := map[string]string{}
	for _, name := range []string{"final", "best", "rna", "ema", "kept/epoch-0001", "kept/epoch-0003"} {
		b, err := os.ReadFile(filepath.Join(out, name+".safetensors"))
		if err != nil {
			s.Error(err)
		}
		all[name] = string(b)
	}
	b, err := os.ReadFile(filepath.Join(out, "metrics.jsonl"))
	if err != nil {
		s.Error(err)
	}
	for line := range strings.Lines(string(b)) {
		var rec map[string]any
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			s.Errorf("%s: %v in %q", out, err, line)
		}
		untime(rec)
		line, _ := json.Marshal(rec)
		all["metrics.jsonl"] += string(line) + "\n"
	}
	return all
}

// untime removes times.
func untime(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			if key == "seconds" || key == "img_per_s" {
				delete(v, key)
			}
			untime(x)
		}
	case []any:
		for _, x := range v {
			untime(x)
		}
	}
}

// same reports whether a run ended with the bits of the undisturbed one.
func (s *soak) same(out string) bool {
	ok := true
	for name, got := range s.ends(out) {
		if got != s.want[name] {
			ok = false
			s.Errorf("%s: %s differs from that of an undisturbed run", out, name)
		}
	}
	return ok
}

// finish resumes a run until its end, or starts it if there is none. hurt, if not nil, is applied to each process while
// it runs.
func (s *soak) finish(out string, hurt func(cmd *exec.Cmd)) (starts int) {
	for starts = 1; ; starts++ {
		cmd, said := s.start(append(soakRun(out), "--resume-or-start")...)
		if hurt != nil && starts <= 3 {
			hurt(cmd)
		}
		err := cmd.Wait()
		switch status := cmd.ProcessState.ExitCode(); {
		case err == nil:
			return starts
		case starts > 6 || status != -1 && status != 130 && hurt == nil:
			s.Errorf("%s: %v: %s", out, err, said)
			return starts
		}
	}
}

func (s *soak) start(args ...string) (*exec.Cmd, *bytes.Buffer) {
	s.Helper()
	cmd, said := itself(args...), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	return cmd, said
}

// after kills a process after a random time.
func (s *soak) after(cmd *exec.Cmd, sig syscall.Signal) {
	time.Sleep(time.Duration(s.Float64() * 1.2 * float64(s.took)))
	cmd.Process.Signal(sig)
}

// atWrite kills a process at one of its first most changes of a file in the folder.
func (s *soak) atWrite(cmd *exec.Cmd, out string, most int) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		s.Fatal(err)
	}
	defer unix.Close(fd)
	const what = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE |
		unix.IN_CLOSE_WRITE
	watched := map[string]bool{}
	buf := make([]byte, 1<<16)
	left := 1 + s.IntN(most)
	for end := time.Now().Add(4 * s.took); time.Now().Before(end) && left > 0; {
		for _, pattern := range []string{"", "checkpoint", "checkpoint/*"} {
			dirs, _ := filepath.Glob(filepath.Join(out, pattern))
			for _, dir := range dirs {
				if !watched[dir] {
					if _, err := unix.InotifyAddWatch(fd, dir, what|unix.IN_ONLYDIR); err == nil {
						watched[dir] = true
					}
				}
			}
		}
		n, _ := unix.Read(fd, buf)
		for at := 0; at+unix.SizeofInotifyEvent <= n; left-- {
			at += unix.SizeofInotifyEvent + int(buf[at+12]) | int(buf[at+13])<<8
		}
		if syscall.Kill(cmd.Process.Pid, 0) != nil {
			return
		}
		time.Sleep(50 * time.Microsecond)
	}
	cmd.Process.Kill()
}

// TestSoak disturbs short runs in many ways and prints the results. SOAK_KILLS, SOAK_FLIPS and SOAK_SEED change its
// numbers.
func TestSoak(t *testing.T) {
	seed := soakNumber(t, "SOAK_SEED", 1)
	s := &soak{T: t, Rand: rand.New(rand.NewPCG(uint64(seed), 0))}
	whole := filepath.Join(t.TempDir(), "whole")
	from := time.Now()
	if s.finish(whole, nil); t.Failed() {
		return
	}
	s.took = time.Since(from)
	s.want = s.ends(whole)
	fmt.Printf("\nseed %d; an undisturbed run takes %v\n\n| what | runs | times | ended with equal bits |\n|-|-|-|-|\n",
		seed, s.took.Round(time.Millisecond))
	kills := soakNumber(t, "SOAK_KILLS", 200)
	for _, way := range []struct {
		name string
		runs int
		hurt func(cmd *exec.Cmd, out string)
	}{
		{"SIGKILL at any time", kills / 4, func(cmd *exec.Cmd, _ string) { s.after(cmd, syscall.SIGKILL) }},
		{"SIGKILL at a write", kills / 4, func(cmd *exec.Cmd, out string) { s.atWrite(cmd, out, 120) }},
		{"SIGTERM, SIGINT, SIGHUP or SIGUSR1", kills / 8, func(cmd *exec.Cmd, _ string) {
			s.after(cmd, []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1}[s.IntN(4)])
		}},
	} {
		times, same := 0, 0
		for range way.runs {
			out := filepath.Join(t.TempDir(), "run")
			times += s.finish(out, func(cmd *exec.Cmd) { way.hurt(cmd, out) }) - 1
			if s.same(out) {
				same++
			}
		}
		fmt.Printf("| %s | %d | %d | %d |\n", way.name, way.runs, times, same)
	}
	s.fullDisks(kills / 10)
	s.twoProcesses(kills / 10)
	s.flips(soakNumber(t, "SOAK_FLIPS", 300))
}

// fullDisks runs on file systems that are too small, which then grow.
func (s *soak) fullDisks(n int) {
	full, same := 0, 0
	for range n {
		disk := s.TempDir()
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dk", 100+s.IntN(4000))); err != nil {
			fmt.Printf("| full disk | 0 | not tried: %v | |\n", err)
			return
		}
		out := filepath.Join(disk, "run")
		cmd, said := s.start(soakRun(out)...)
		if err := cmd.Wait(); err != nil {
			full++
			if !strings.Contains(said.String(), "no space left") {
				s.Errorf("full disk: %s", said)
			}
		}
		if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
			s.Error(err)
		}
		if cmd.ProcessState.ExitCode() != 0 {
			s.finish(out, nil)
		}
		if s.same(out) {
			same++
		}
		if err := syscall.Unmount(disk, 0); err != nil {
			s.Error(err)
		}
	}
	fmt.Printf("| disk full, then larger | %d | %d | %d |\n", n, full, same)
}

// twoProcesses starts two processes on a folder at once: one trains, and the other's error names it.
func (s *soak) twoProcesses(n int) {
	refused, same := 0, 0
	for k := range n {
		out := filepath.Join(s.TempDir(), "run")
		args := soakRun(out)
		if k%2 == 1 { // both resume
			cmd, _ := s.start(args...)
			s.after(cmd, syscall.SIGTERM)
			cmd.Wait()
			if _, err := os.Stat(filepath.Join(out, "checkpoint", "000001")); err == nil && cmd.ProcessState.ExitCode() != 0 {
				args = []string{"train", "--resume", out, "-q"}
			} else {
				os.RemoveAll(out)
			}
		}
		a, sayA := s.start(args...)
		b, sayB := s.start(args...)
		errA, errB := a.Wait(), b.Wait()
		for _, o := range []struct {
			err  error
			said string
		}{{errA, sayA.String()}, {errB, sayB.String()}} {
			if o.err == nil {
				continue
			}
			if refused++; !strings.Contains(o.said, "is written to by ") && !strings.Contains(o.said, "holds a run already") {
				s.Errorf("two processes: %s", o.said)
			}
		}
		if errA != nil && errB != nil {
			s.Errorf("two processes: both failed: %s %s", sayA, sayB)
		}
		if s.same(out) {
			same++
		}
	}
	fmt.Printf("| two processes on a folder | %d | %d refused | %d |\n", n, refused, same)
}

// flips flips a bit of a file of a stopped run, verifies the run, and resumes it.
func (s *soak) flips(n int) {
	half := filepath.Join(s.TempDir(), "half")
	cmd, said := s.start(append(soakRun(half), "--stop-within", "20s")...)
	for end := time.Now().Add(10 * s.took); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(half, "kept", "epoch-0002.safetensors")); err == nil {
			break
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		s.Fatalf("%v: %s", err, said)
	}
	var names []string
	err := filepath.WalkDir(half, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), ".lock") {
			rel, _ := filepath.Rel(half, path)
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	found, resumed, same := 0, 0, 0
	for range n {
		dir := filepath.Join(s.TempDir(), "run")
		if err := os.CopyFS(dir, os.DirFS(half)); err != nil {
			s.Fatal(err)
		}
		name := names[s.IntN(len(names))]
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			s.Fatal(err)
		}
		at := s.IntN(len(b))
		b[at] ^= 1 << s.IntN(8)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			s.Fatal(err)
		}
		if status, out, stderr := runRNA(s.T, "verify", dir); status == 1 && strings.Contains(strings.ReplaceAll(out+stderr,
			"\n  ", " "), filepath.Base(name)) {
			found++
		} else {
			s.Errorf("%s, byte %d: verify ends with %d: %s%s", name, at, status, out, stderr)
		}
		// training does not read these files: their damage stays
		if !strings.HasPrefix(name, "checkpoint") && name != "config.json" {
			continue
		}
		resumed++
		s.finish(dir, nil)
		if s.same(dir) {
			same++
		}
		os.RemoveAll(dir)
	}
	fmt.Printf("| a bit flipped, found by verify | %d | %d | |\n", n, found)
	fmt.Printf("| a bit of a checkpoint flipped, then resumed | %d | | %d |\n", resumed, same)
}
