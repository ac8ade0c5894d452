package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"onlinerna/internal/catalogue"
)

// server answers with content as its fields say, and counts.
type server struct {
	*httptest.Server
	content  []byte
	etag     string
	cut      int            // bytes after which an answer ends, 0 for none
	cuts     int            // answers that are cut
	answers  map[string]int // status by "range", "first" or "all"
	ignore   bool           // ranges
	changing func(n int)    // called before answer n
	requests atomic.Int64
	sent     atomic.Int64
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(s.requests.Add(1))
	if s.changing != nil {
		s.changing(n)
	}
	asked := r.Header.Get("Range") != ""
	for on, status := range s.answers {
		if on == "all" || on == "range" && asked || on == "first" && n == 1 {
			w.WriteHeader(status)
			return
		}
	}
	if s.ignore {
		r.Header.Del("Range")
	}
	if s.etag != "" {
		w.Header().Set("ETag", s.etag)
	}
	counted := &counter{ResponseWriter: w, sent: &s.sent}
	if n <= s.cuts {
		counted.cut = s.cut
	}
	http.ServeContent(counted, r, "", time.Time{}, bytes.NewReader(s.content))
}

// counter counts the bytes sent, and cuts the connection.
type counter struct {
	http.ResponseWriter
	sent *atomic.Int64
	cut  int
	n    int
}

func (c *counter) Write(b []byte) (int, error) {
	if c.cut > 0 && c.n+len(b) > c.cut {
		c.sent.Add(int64(c.cut - c.n))
		c.ResponseWriter.Write(b[:c.cut-c.n])
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	c.n += len(b)
	c.sent.Add(int64(len(b)))
	return c.ResponseWriter.Write(b)
}

func serve(t *testing.T, s *server) *server {
	t.Helper()
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func random(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func sumOf(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// item is one file of weights at some addresses.
func item(b []byte, addresses ...string) catalogue.Item {
	return catalogue.Item{Name: "net", Kind: catalogue.Weights, Files: []catalogue.File{
		{Name: "net.pth", Addresses: addresses, Size: int64(len(b)), SHA256: sumOf(b)},
	}}
}

func options(t *testing.T) Options {
	return Options{Pause: time.Millisecond, Idle: 5 * time.Second, Log: t.Logf}
}

// leaves checks which files are in the folder of weights.
func leaves(t *testing.T, dir string, want ...string) {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(dir, "weights"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range all {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the folder has %q, want %q", got, want)
	}
}

func TestGet(t *testing.T) {
	content := random(300_000)
	other := random(300_001)[:300_000]
	etag := func(tag string) *server {
		return &server{content: content, etag: `"` + tag + `"`, cut: 100_000, cuts: 1}
	}
	changed := etag("a")
	changed.changing = func(n int) {
		if changed.content = content; n == 1 {
			changed.content = other
		} else {
			changed.etag = `"b"`
		}
	}
	unnamed := &server{cut: 100_000, cuts: 1} // the same change without ETags
	unnamed.changing = func(n int) {
		if unnamed.content = content; n == 1 {
			unnamed.content = other
		}
	}
	for _, c := range []struct {
		name     string
		server   *server
		part     []byte // that lies there
		requests int64
		most     int64 // bytes sent
	}{
		{name: "whole", server: &server{content: content}, requests: 1, most: 300_000},
		{name: "cut, goes on", server: etag("x"), requests: 2, most: 300_000},
		{name: "cut often", server: &server{content: content, cut: 20_000, cuts: 14}, requests: 15, most: 300_000},
		{name: "partial file", server: &server{content: content}, part: content[:250_000], requests: 1, most: 50_000},
		{name: "partial file that is whole", server: &server{content: content}, part: content},
		{name: "partial file that is too long", server: &server{content: content},
			part:     append(bytes.Clone(content), 1),
			requests: 1, most: 300_000},
		{name: "partial file of another", server: &server{content: content}, part: other[:250_000],
			requests: 2, most: 350_000},
		{name: "ranges ignored", server: &server{content: content, ignore: true, cut: 100_000, cuts: 1},
			requests: 2, most: 400_000},
		{name: "ranges refused by 416", server: &server{content: content, answers: map[string]int{"range": 416}},
			part: content[:9], requests: 2, most: 300_000},
		{name: "ranges refused by 403", server: &server{content: content, answers: map[string]int{"range": 403}},
			part: content[:9], requests: 2, most: 300_000},
		{name: "busy at first", server: &server{content: content, answers: map[string]int{"first": 503}},
			requests: 2, most: 300_000},
		{name: "changed, with another ETag", server: changed, requests: 2, most: 400_000},
		{name: "changed, without ETag", server: unnamed, requests: 3, most: 600_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, dir := serve(t, c.server), t.TempDir()
			it := item(content, s.URL+"/net.pth")
			path := it.Path(dir)
			if c.part != nil {
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path+".part", c.part, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			o := options(t)
			last := int64(-1)
			o.Progress = func(name string, done, total int64) {
				if last = done; name != "net.pth" || total != int64(len(content)) {
					t.Errorf("progress %s, %d of %d", name, done, total)
				}
			}
			got, err := Get(t.Context(), it, dir, o)
			if err != nil || got != path {
				t.Fatal(got, err)
			}
			b, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(b, content) {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
			leaves(t, dir, "net.pth")
			if n := s.requests.Load(); n != c.requests || s.sent.Load() > c.most {
				t.Errorf("%d requests and %d bytes, want %d and %d", n, s.sent.Load(), c.requests, c.most)
			}
			if c.requests > 0 && last != int64(len(content)) {
				t.Errorf("progress ends at %d", last)
			}
			// again: it is there
			if _, err := Get(t.Context(), it, dir, o); err != nil || s.requests.Load() != c.requests {
				t.Error(err, s.requests.Load())
			}
		})
	}
}

func TestRough(t *testing.T) {
	content := random(100_000)
	s, dir := serve(t, &server{content: content}), t.TempDir()
	it := item(content, s.URL)
	it.Files[0].Size, it.Files[0].Rough, it.Files[0].SHA256 = 100_300, true, sumOf(content)[:8]
	if err := os.MkdirAll(filepath.Join(dir, "weights"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, have := range []int{0, 40_000, 100_000} { // for the last one the server answers that nothing is left
		os.Remove(it.Path(dir))
		if err := os.WriteFile(it.Path(dir)+".part", content[:have], 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Get(t.Context(), it, dir, options(t)); err != nil {
			t.Fatal(have, err)
		}
	}
	leaves(t, dir, "net.pth")
}

func TestAddressesInTurn(t *testing.T) {
	content := random(1000)
	gone := serve(t, &server{answers: map[string]int{"all": 404}})
	broken := serve(t, &server{answers: map[string]int{"all": 500}})
	page := serve(t, &server{content: []byte("<html>please log in</html>")})
	wrong := serve(t, &server{content: random(1001)[:1000]})
	good := serve(t, &server{content: content})
	dir := t.TempDir()
	it := item(content, gone.URL, broken.URL, page.URL, wrong.URL, good.URL)
	if _, err := Get(t.Context(), it, dir, options(t)); err != nil {
		t.Fatal(err)
	}
	leaves(t, dir, "net.pth")
	for s, want := range map[*server]int64{gone: 1, broken: tries, page: 1, wrong: 1, good: 1} {
		if n := s.requests.Load(); n != want {
			t.Errorf("%d requests, want %d", n, want)
		}
	}
}

// TestFailure: no server has the file. The error says why, and how to provide the file by hand; such a file is checked
// and used.
func TestFailure(t *testing.T) {
	content := random(1000)
	wrong := serve(t, &server{content: random(1001)[:1000]})
	off := httptest.NewServer(nil)
	off.Close()
	dir := t.TempDir()
	it := item(content, off.URL+"/net.pth", wrong.URL)
	_, err := Get(t.Context(), it, dir, options(t))
	var f *Failure
	if !errors.As(err, &f) {
		t.Fatal(err)
	}
	for _, want := range []string{off.URL + "/net.pth: ", "connection refused", "SHA-256 " + sumOf(wrong.content),
		"1000 bytes, SHA-256 " + sumOf(content), it.Path(dir)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	leaves(t, dir)
	if err := os.WriteFile(it.Path(dir), content[:999], 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Get(t.Context(), it, dir, options(t))
	if err == nil || !strings.Contains(err.Error(), "999 bytes in place of the 1000") {
		t.Error(err)
	}
	if err := os.WriteFile(it.Path(dir), content, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Get(t.Context(), it, dir, options(t)); err != nil {
		t.Error(err)
	}
}

func TestMirror(t *testing.T) {
	content := random(1000)
	s, dir := serve(t, &server{content: content}), t.TempDir()
	o := options(t)
	o.Mirror = s.URL + "/some/where/"
	var asked string
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		s.ServeHTTP(w, r)
	})
	_, err := Get(t.Context(), item(content, "http://nowhere.invalid/"), dir, o)
	if err != nil || asked != "/some/where/net.pth" {
		t.Error(asked, err)
	}
}

// TestIdle: a server sends a part and then nothing.
func TestIdle(t *testing.T) {
	content := random(1000)
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			w.Header().Set("Content-Length", "1000")
			w.Write(content[:400])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}))
	defer s.Close()
	o := options(t)
	o.Idle = 50 * time.Millisecond
	var log []string
	o.Log = func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }
	if _, err := Get(t.Context(), item(content, s.URL), t.TempDir(), o); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	if len(log) != 1 || !strings.Contains(log[0], "after 400 of 1000 bytes: the server sends nothing more") {
		t.Error(log)
	}
}

// TestFullDisk puts the partial file on a device that is always full.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	content := random(1000)
	s, dir := serve(t, &server{content: content}), t.TempDir()
	it := item(content, s.URL, s.URL)
	if err := os.MkdirAll(filepath.Dir(it.Path(dir)), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", it.Path(dir)+".part"); err != nil {
		t.Fatal(err)
	}
	_, err := Get(t.Context(), it, dir, options(t))
	n := s.requests.Load()
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the same command goes on") || n != 1 {
		t.Errorf("%v after %d requests", err, n)
	}
}

// TestTwoAtOnce: one caller downloads and the others wait for it.
func TestTwoAtOnce(t *testing.T) {
	content := random(300_000)
	s, dir := serve(t, &server{content: content}), t.TempDir()
	s.changing = func(int) { time.Sleep(100 * time.Millisecond) }
	var wait sync.WaitGroup
	var waited atomic.Int64
	o := options(t)
	o.Log = func(format string, _ ...any) {
		if strings.HasPrefix(format, "another process") {
			waited.Add(1)
		}
	}
	for range 4 {
		wait.Go(func() {
			if _, err := Get(t.Context(), item(content, s.URL), dir, o); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if s.requests.Load() != 1 || waited.Load() != 3 {
		t.Errorf("%d requests, %d waited", s.requests.Load(), waited.Load())
	}
	leaves(t, dir, "net.pth")
}

// TestStopped ends a download in its middle; the partial file stays.
func TestStopped(t *testing.T) {
	content := random(1 << 20)
	s, dir := serve(t, &server{content: content}), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	o := options(t)
	o.Progress = func(_ string, done, _ int64) {
		if done > 500_000 {
			stop()
		}
	}
	if _, err := Get(ctx, item(content, s.URL), dir, o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	leaves(t, dir, "net.pth.part")
	o.Progress = nil
	if _, err := Get(t.Context(), item(content, s.URL), dir, o); err != nil {
		t.Fatal(err)
	}
	leaves(t, dir, "net.pth")
}
