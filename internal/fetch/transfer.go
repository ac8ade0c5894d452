package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"onlinerna/internal/catalogue"
	"onlinerna/internal/files"
)

// transfer brings one file from one address.
type transfer struct {
	*Options
	file                catalogue.File
	address, path, part string

	etag   string // of the bytes of part, "" if they came from elsewhere
	mixed  bool   // part has bytes of several answers
	whole  bool   // ranges are not asked for: the server refuses them
	longer int64  // the most bytes that part had
	answer bool   // the server has answered
}

// localError is one of this machine: no other address helps.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

// finalError is an error that another try at the same address cannot fix.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

func final(format string, args ...any) error { return &finalError{fmt.Errorf(format, args...)} }

// run asks the address until the file is whole, with the right checksum, and has its name.
func (t *transfer) run(ctx context.Context) error {
	pause := t.Pause
	for failed, fresh := 0, false; ; {
		err := t.ask(ctx)
		if err == nil {
			if err = t.finish(); err == nil {
				return nil
			}
			var local *localError
			if errors.As(err, &local) {
				return err
			}
			if e := os.Remove(t.part); e != nil {
				return &localError{e}
			}
			if !t.mixed || fresh {
				return err
			}
			t.Log("%v: downloading it anew, as its parts may be of different files", err)
			fresh, t.mixed, t.etag = true, false, ""
			continue
		}
		var local *localError
		var last *finalError
		if ctx.Err() != nil || errors.As(err, &local) || errors.As(err, &last) {
			return err
		}
		if n := sizeOf(t.part); n > t.longer {
			failed, pause, t.longer = 0, t.Pause, n
		}
		if failed++; failed == tries {
			return err
		}
		t.Log("%s: %v: trying again in %v", t.file.Name, err, pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause *= 2
	}
}

func sizeOf(path string) int64 {
	if st, err := os.Stat(path); err == nil {
		return st.Size()
	}
	return 0
}

// finish checks the partial file and gives it its name.
func (t *transfer) finish() error {
	if err := check(t.part, t.file); err != nil {
		return err
	}
	if err := files.Rename(t.part, t.path); err != nil {
		return &localError{err}
	}
	if err := files.SyncDir(filepath.Dir(t.path)); err != nil {
		return &localError{err}
	}
	return nil
}

// ask makes one request and appends the answer to the partial file; nil when it is whole.
func (t *transfer) ask(ctx context.Context) (err error) {
	out, err := os.OpenFile(t.part, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return &localError{err}
	}
	defer func() {
		if e := out.Sync(); err == nil && e != nil && !errors.Is(e, errors.ErrUnsupported) {
			err = &localError{e}
		}
		if e := out.Close(); err == nil && e != nil {
			err = &localError{e}
		}
	}()
	have := sizeOf(t.part)
	switch {
	case !t.file.Rough && have == t.file.Size:
		t.mixed = true
		return nil
	case t.whole, !t.file.Rough && have > t.file.Size:
		have = 0
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.address, nil)
	if err != nil {
		return &finalError{err}
	}
	t.sign(req)
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if t.etag != "" {
			req.Header.Set("If-Range", t.etag)
		}
	}
	answer, err := t.Client.Do(req)
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" && !t.answer {
		return &finalError{plain(err)} // off line, or no such server
	}
	if err != nil {
		return plain(err)
	}
	t.answer = true
	defer answer.Body.Close()
	have, total, err := t.begin(answer, have)
	if err != nil || total == have && have > 0 {
		return err
	}
	if have != sizeOf(t.part) {
		if err := out.Truncate(have); err != nil {
			return &localError{err}
		}
	}
	if _, err := out.Seek(have, io.SeekStart); err != nil {
		return &localError{err}
	}
	return t.copy(ctx, out, answer.Body, have, total, cancel)
}

// plain is an error of a request without the address, which the caller names.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// begin evaluates an answer to a request for the bytes from have on: it returns the offset at which the answer's bytes
// start, and the file's size, 0 if unknown.
func (t *transfer) begin(answer *http.Response, have int64) (from, total int64, err error) {
	part := answer.Header.Get("Content-Range")
	switch code := answer.StatusCode; {
	case code == http.StatusOK:
		t.mixed, t.etag = false, strong(answer)
		total = max(0, answer.ContentLength)
	case code == http.StatusPartialContent:
		var to int64
		n, err := fmt.Sscanf(part, "bytes %d-%d/%d", &from, &to, &total)
		if n < 2 || from != have || err != nil && n != 2 {
			t.whole = true
			return 0, 0, fmt.Errorf("the server answers %q in place of the bytes from %d on", part, have)
		}
		if t.etag == "" || strong(answer) != t.etag {
			t.mixed = true // the parts may be of different files
		}
		t.etag = strong(answer)
	case code == http.StatusRequestedRangeNotSatisfiable && part == fmt.Sprintf("bytes */%d", have):
		t.mixed = true // as long as the server's
		return have, have, nil
	case refused(answer) != nil: // the hub lists the files of a repository that it does not give
		return 0, 0, final("%w", refused(answer))
	case have > 0 && code/100 == 4:
		t.whole = true
		return 0, 0, fmt.Errorf("%s for a part of it", answer.Status)
	case code/100 == 5, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return 0, 0, errors.New(answer.Status)
	default:
		return 0, 0, final("%s", answer.Status)
	}
	slack := int64(0)
	if t.file.Rough {
		slack = t.file.Size / 50
	}
	if total > 0 && (total < t.file.Size-slack || total > t.file.Size+slack) {
		return 0, 0, final("a file of %d bytes in place of %d", total, t.file.Size)
	}
	return from, total, nil
}

// strong is an answer's ETag if it identifies the exact bytes.
func strong(answer *http.Response) string {
	if tag := answer.Header.Get("ETag"); !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return ""
}

// errIdle ends a request whose server sends nothing.
var errIdle = errors.New("the server sends nothing more")

// copy appends the answer, up to the size of the file.
func (t *transfer) copy(ctx context.Context, out *os.File, in io.Reader, have, total int64,
	cancel context.CancelCauseFunc) error {
	known := total
	if known == 0 {
		known = t.file.Size
	}
	most := known
	if total == 0 && t.file.Rough {
		most += most / 50
	}
	t.Progress(t.file.Name, have, known)
	idle := time.AfterFunc(t.Idle, func() { cancel(errIdle) })
	defer idle.Stop()
	b := make([]byte, 1<<18)
	for {
		n, err := in.Read(b)
		idle.Reset(t.Idle)
		if have += int64(n); have > most {
			return final("more than the %d bytes of the file", most)
		}
		if _, e := out.Write(b[:n]); e != nil {
			return &localError{e}
		}
		t.Progress(t.file.Name, have, known)
		switch {
		case ctx.Err() != nil && context.Cause(ctx) != errIdle:
			return ctx.Err()
		case err == io.EOF && (total == 0 || have == total):
			return nil
		case err == io.EOF:
			return fmt.Errorf("the connection ends after %d of %d bytes", have, total)
		case err != nil && context.Cause(ctx) == errIdle:
			return fmt.Errorf("after %d of %d bytes: %w", have, known, errIdle)
		case err != nil:
			return fmt.Errorf("after %d of %d bytes: %w", have, known, err)
		}
	}
}
