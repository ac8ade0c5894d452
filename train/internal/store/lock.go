package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"onlinerna/internal/files"
)

// A Lock keeps other processes from writing into a folder. The system releases it when the process dies.
type Lock struct {
	path string       // of the file that names the holder
	file *flock.Flock // nil on a file system without locks
}

// Holder is who has a lock, as its file says.
type Holder struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Start time.Time `json:"start"`
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d on %s since %s", h.PID, h.Host, h.Start.Format("2006-01-02 15:04:05"))
}

// HeldError says who has the lock of a folder.
type HeldError struct {
	Dir string
	Holder
	Advice string
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is written to by %v: %s", e.Dir, e.Holder, e.Advice)
}

const (
	lockName   = ".lock"
	holderName = ".lock.json" // beside it: Windows lets nobody read a file that is locked
)

// Acquire takes the lock of a folder that is there, or says who has it.
func Acquire(dir string) (*Lock, error) {
	f := flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o666))
	path := filepath.Join(dir, holderName)
	got, err := f.TryLock()
	switch {
	case errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK):
		return acquireFile(dir)
	case err != nil:
		return nil, fmt.Errorf("the lock of %s: %w", dir, err)
	case !got:
		return nil, &HeldError{dir, holder(path), "wait for its end, or stop it"}
	}
	if err := files.Write(path, sign()); err != nil {
		f.Close()
		return nil, fmt.Errorf("the lock of %s: %w", dir, err)
	}
	return &Lock{path, f}, nil
}

// acquireFile takes a lock on a file system that has none: whoever makes the file has it. That of a process of this host that is dead is taken over.
func acquireFile(dir string) (*Lock, error) {
	path := filepath.Join(dir, holderName)
	for range 2 {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err == nil {
			_, err = f.Write(sign())
			if err = errors.Join(err, f.Close()); err != nil {
				os.Remove(path)
				return nil, fmt.Errorf("the lock of %s: %w", dir, err)
			}
			return &Lock{path: path}, nil
		}
		if !os.IsExist(err) {
			return nil, fmt.Errorf("the lock of %s: %w", dir, err)
		}
		h := holder(path)
		if host, _ := os.Hostname(); h.Host != host || h.PID == 0 || alive(h.PID) {
			return nil, &HeldError{dir, h, "wait for its end, or, where it is dead, remove " + path}
		}
		stale := fmt.Sprintf("%s.%d", path, os.Getpid()) // one of several that see it does this
		if err := os.Rename(path, stale); err == nil {
			os.Remove(stale)
		}
	}
	return nil, &HeldError{dir, holder(path), "wait for its end"}
}

func sign() []byte {
	host, _ := os.Hostname()
	b, _ := json.Marshal(Holder{host, os.Getpid(), time.Now().Truncate(time.Second)})
	return append(b, '\n')
}

// holder reads who has a lock. Where that can't be read it is nobody in particular.
func holder(path string) (h Holder) {
	if b, err := os.ReadFile(path); err != nil || json.Unmarshal(b, &h) != nil {
		return Holder{}
	}
	return h
}

// alive says whether there is a process of that number on this host.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	return !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// Release gives the lock back. A nil Lock has nothing to give.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	err := os.Remove(l.path)
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return err
}
