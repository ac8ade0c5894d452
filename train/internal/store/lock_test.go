package store

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain is also a second process that takes a folder's lock, reports it and waits to be killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("LOCK"); dir != "" {
		l, err := Acquire(dir)
		fmt.Println(err)
		if err == nil {
			os.Stdin.Read(make([]byte, 1))
		}
		l.Release()
		return
	}
	os.Exit(m.Run())
}

func second(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LOCK="+dir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(line)
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	first, said := second(t, dir)
	if said != "<nil>" {
		t.Fatal(said)
	}
	l, err := Acquire(dir)
	var held *HeldError
	if !errors.As(err, &held) || held.PID != first.Process.Pid || !strings.Contains(err.Error(), dir) || l != nil {
		t.Fatal(err)
	}
	if !Held(dir) {
		t.Error("another process has the lock, Held says no")
	}
	first.Process.Kill()
	first.Wait()
	if Held(dir) {
		t.Error("the holder was killed, Held says yes")
	}
	if l, err = Acquire(dir); err != nil {
		t.Fatal("after the holder was killed:", err)
	}
	if _, said = second(t, dir); !strings.Contains(said, fmt.Sprintf("process %d on ", os.Getpid())) {
		t.Error(said)
	}
	if !Held(dir) {
		t.Error("this process has the lock, Held says no")
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if Held(dir) || Held(t.TempDir()) {
		t.Error("no process has the lock, Held says yes")
	}
	if _, said = second(t, dir); said != "<nil>" {
		t.Error("after its release:", said)
	}
}

// On a file system without locks the file itself is the lock.
func TestFileLock(t *testing.T) {
	dir := t.TempDir()
	l, err := acquireFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := acquireFile(dir); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Errorf("a second time: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	dead := exec.Command(os.Args[0], "-test.run", "^$")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says  string
		taken bool
	}{
		{fmt.Sprintf(`{"host": %q, "pid": %d}`, host, dead.Process.Pid), true},
		{fmt.Sprintf(`{"host": %q, "pid": %d}`, host, os.Getppid()), false},
		// an earlier process of this one's number, as in containers, and this one
		{fmt.Sprintf(`{"host": %q, "pid": %d}`, host, os.Getpid()), true},
		{fmt.Sprintf(`{"host": %q, "pid": %d, "token": "other"}`, host, os.Getpid()), true},
		{fmt.Sprintf(`{"host": %q, "pid": %d, "token": %q}`, host, os.Getpid(), token), false},
		{`{"host": "elsewhere", "pid": 1}`, false},
		{`{"ho`, false},
	} {
		path := filepath.Join(dir, holderName)
		if err := os.WriteFile(path, []byte(c.says), 0o644); err != nil {
			t.Fatal(err)
		}
		if Held(dir) == c.taken {
			t.Errorf("%s: Held says %v", c.says, !c.taken)
		}
		l, err := acquireFile(dir)
		if (err == nil) != c.taken || err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", c.says, err)
		}
		l.Release()
		os.Remove(path)
	}
}
