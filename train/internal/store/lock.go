package store

import (
	"crypto/rand"
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

// A Lock keeps other processes from writing to a folder. The system releases it when the process ends.
type Lock struct {
	path string       // of the file that names the holder
	file *flock.Flock // nil on file systems without locks
}

// Holder is the process that has a lock, as its file says.
type Holder struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Start time.Time `json:"start"`
	Token string    `json:"token"` // of the process: in a container each has the same number
}

// token tells this process from earlier ones of its number.
var token = rand.Text()

// dead reports whether the holder was a process of this host that has ended.
func (h Holder) dead() bool {
	host, _ := os.Hostname()
	if h.Host != host || h.PID == 0 {
		return false
	}
	if h.PID == os.Getpid() {
		return h.Token != token
	}
	return !alive(h.PID)
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d on %s since %s", h.PID, h.Host, h.Start.Format("2006-01-02 15:04:05"))
}

// HeldError means that another process has the folder's lock.
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
	holderName = ".lock.json" // beside the lock: Windows does not let others read a locked file
)

// Acquire takes the lock of an existing folder, or returns an error that names the holder.
func Acquire(dir string) (*Lock, error) {
	own := filepath.Join(dir, lockName)
	if st, err := os.Stat(own); err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: remove it", own) // opening a pipe would wait
	}
	f := flock.New(own, flock.SetPermissions(0o666))
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

// acquireFile takes a lock on a file system without locks: the process that creates the file has it. It takes over the
// lock of a dead process on this host.
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
		if !h.dead() {
			return nil, &HeldError{dir, h, "wait for its end, or, where it is dead, remove " + path}
		}
		stale := fmt.Sprintf("%s.%d", path, os.Getpid()) // only one of several processes succeeds
		if err := os.Rename(path, stale); err == nil {
			os.Remove(stale)
		}
	}
	return nil, &HeldError{dir, holder(path), "wait for its end"}
}

// Held reports whether a process has the lock of a folder. It changes nothing there.
func Held(dir string) bool {
	path, lock := filepath.Join(dir, holderName), filepath.Join(dir, lockName)
	if _, err := os.Stat(path); err != nil {
		return false // Release removes it
	}
	if _, err := os.Stat(lock); err == nil {
		f := flock.New(lock, flock.SetFlag(os.O_RDONLY))
		defer f.Close()
		if got, err := f.TryRLock(); err == nil {
			return !got
		}
	}
	return !holder(path).dead()
}

// HolderOf is the holder of a folder's lock as its file says, zero if it says none.
func HolderOf(dir string) Holder { return holder(filepath.Join(dir, holderName)) }

// Is reports whether two files name the same process.
func (h Holder) Is(g Holder) bool {
	return h.Host == g.Host && h.PID == g.PID && h.Start.Equal(g.Start)
}

func sign() []byte {
	host, _ := os.Hostname()
	b, _ := json.Marshal(Holder{host, os.Getpid(), time.Now().Truncate(time.Second), token})
	return append(b, '\n')
}

// holder reads the holder of a lock; zero if that fails.
func holder(path string) (h Holder) {
	if b, err := files.Read(path); err != nil || json.Unmarshal(b, &h) != nil {
		return Holder{}
	}
	return h
}

// alive reports whether the process exists on this host.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	return !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// Release releases the lock. A nil Lock does nothing.
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
