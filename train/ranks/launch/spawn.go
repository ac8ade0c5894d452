package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"onlinerna/internal/files"
	"onlinerna/train/ranks"
)

const (
	parentPipe = 3               // the descriptor by which ranks notice the end of the launcher
	endGrace   = 5 * time.Second // time for the other ranks to end by themselves after one has ended
	mostPath   = 103             // bytes of a Unix socket's path on macOS; other systems take a few more
)

// rankProcess is a started rank.
type rankProcess struct {
	cmd    *exec.Cmd
	device string
	killed bool // by spawn
	err    error
}

// spawn runs this program once for each of several devices, as ranks that meet at a Unix socket, and returns when all
// have ended. It returns Ended after an interrupt, which it forwards to rank 0, and after an error that a rank has
// printed.
func spawn(ctx context.Context, devices []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	socket, remove, err := newSocket()
	if err != nil {
		return err
	}
	defer remove()
	their, own, err := os.Pipe()
	if err != nil {
		return err
	}
	defer own.Close()
	defer their.Close()
	key := rand.Text()
	list := make([]*rankProcess, len(devices))
	ended := make(chan *rankProcess, len(devices))
	var failed error
	for k, device := range devices {
		cmd := exec.Command(self, os.Args[1:]...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", ranks.OwnRank, k), fmt.Sprintf("%s=%d", ranks.OwnSize,
			len(devices)),
			ranks.OwnSocket+"="+socket, ranks.KeyVar+"="+key)
		cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdout, os.Stderr, []*os.File{their}
		apart(cmd) // Ctrl-C is forwarded once
		p := &rankProcess{cmd: cmd, device: device}
		if err := cmd.Start(); err != nil {
			failed = fmt.Errorf("rank %d: %w", k, err)
			list = list[:k]
			break
		}
		list[k] = p
		go func() {
			p.err = cmd.Wait()
			ended <- p
		}()
	}
	return await(ctx, list, ended, failed)
}

// newSocket returns the path of a Unix socket in a new folder: that of temporary files, or /tmp if the path would be too
// long. remove removes the folder.
func newSocket() (path string, remove func() error, err error) {
	for _, above := range []string{os.TempDir(), "/tmp"} {
		var dir string
		if dir, remove, err = files.MkdirTemp(above, "rna-ranks-*"); err != nil {
			return "", nil, err
		}
		if path = filepath.Join(dir, "ranks"); len(path) <= mostPath {
			return path, remove, nil
		}
		if err = remove(); err != nil {
			return "", nil, err
		}
	}
	return "", nil, fmt.Errorf("%s is too long for a Unix socket: set TMPDIR to a folder with a short name", path)
}

// await waits for the ranks.
func await(ctx context.Context, list []*rankProcess, ended chan *rankProcess, failed error) error {
	kill := func() {
		for _, p := range list {
			p.killed = p.cmd.Process.Kill() == nil // false for a rank that has already ended
		}
	}
	var once sync.Once
	var late <-chan time.Time
	if failed != nil {
		kill()
	}
	stop := ctx.Done()
	for range list {
		for waiting := true; waiting; {
			select {
			case <-stop:
				stop = nil
				list[0].cmd.Process.Signal(syscall.SIGTERM)
			case <-late:
				late = nil
				kill()
			case p := <-ended:
				if waiting = false; p.err != nil {
					once.Do(func() { late = time.After(endGrace) })
				}
			}
		}
	}
	if failed != nil {
		return failed
	}
	code := 0
	for k, p := range list {
		var e *exec.ExitError
		switch {
		case p.err == nil || p.killed:
		case !errors.As(p.err, &e):
			return fmt.Errorf("rank %d on %s: %w", k, p.device, p.err)
		case e.ExitCode() < 0:
			return fmt.Errorf("rank %d on %s ended with %v", k, p.device, e.ProcessState)
		case e.ExitCode() == interrupted && code == 0:
			code = interrupted
		case e.ExitCode() != interrupted && code != 2:
			code = e.ExitCode()
		}
	}
	switch code {
	case 0:
		return nil
	case interrupted:
		return Ended(interrupted)
	}
	return Ended(1)
}
