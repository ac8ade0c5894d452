// Package fetch downloads the items of package catalogue into a cache folder: from several addresses in turn, going
// on with partial files, and checked by size and SHA-256. A file or a folder is there whole or not at all.
package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"onlinerna/internal/catalogue"
	"onlinerna/internal/files"
)

// Options are the parameters of a download. The zero value uses the official addresses.
type Options struct {
	// Mirror is the address of a folder that has the files by their names, asked in place of the official ones.
	Mirror string
	// Agent is the User-Agent of requests.
	Agent string
	// Token is the bearer token of requests to the addresses' hosts, not to those that they redirect to.
	Token string
	// Progress is called with the bytes of a file so far and its size, 0 if unknown.
	Progress func(file string, done, total int64)
	// Log is called for each retry with the reason.
	Log func(format string, args ...any)
	// Client makes the requests (default: one that heeds the proxies of the environment).
	Client *http.Client
	// Pause is the time before a second try, which doubles from try to try (default 1 s).
	Pause time.Duration
	// Idle is the longest time without data from a server (default 60 s).
	Idle time.Duration
}

// tries is the number of attempts at an address that sends nothing more.
const tries = 5

func (o *Options) fill() {
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Pause == 0 {
		o.Pause = time.Second
	}
	if o.Idle == 0 {
		o.Idle = time.Minute
	}
	if o.Client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableCompression = true // the bytes of the file are wanted
		t.ResponseHeaderTimeout = o.Idle
		o.Client = &http.Client{Transport: t, CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) == 10 {
				return errors.New("the server redirects ten times")
			}
			if from := via[0].URL; req.URL.Host != from.Host || from.Scheme == "https" && req.URL.Scheme != from.Scheme {
				req.Header.Del("Authorization") // Go keeps it for hosts below the first, and without encryption
			}
			return nil
		}}
	}
}

// Get brings an item into a cache folder and returns its path. Files that lie there are checked and taken. One
// process downloads at a time; others wait. After an error or an interruption the same call goes on.
func Get(ctx context.Context, it catalogue.Item, dir string, o Options) (string, error) {
	o.fill()
	to := it.Path(dir)
	above := filepath.Dir(to)
	if it.Kind == catalogue.Images && it.Archives == nil || it.Folder != "" {
		above = to
	}
	if err := files.MkdirAll(above); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+".lock"), it.Name, o.Log)
	if err != nil {
		return "", err
	}
	defer unlock()
	if it.Archives != nil {
		return to, getArchive(ctx, it, dir, &o)
	}
	if err := otherCommit(it, to); err != nil {
		return "", err
	}
	for _, f := range it.Files {
		if err := one(ctx, it, f, dir, &o); err != nil {
			return "", err
		}
	}
	if it.Classes != nil {
		if err := files.Write(filepath.Join(to, "classes.txt"),
			[]byte(strings.Join(it.Classes, "\n")+"\n")); err != nil {
			return "", err
		}
	}
	if it.Record != nil {
		if err := files.Write(filepath.Join(to, catalogue.RecordName), it.Record); err != nil {
			return "", err
		}
	}
	return to, nil
}

// otherCommit is an error for a folder that has a whole download of another commit of a repository, of which some file
// differs: the files of two commits are not mixed.
func otherCommit(it catalogue.Item, to string) error {
	b, err := os.ReadFile(filepath.Join(to, catalogue.RecordName))
	if it.Record == nil || err != nil || bytes.Equal(b, it.Record) {
		return nil
	}
	other := ""
	of := map[string]bool{}
	for _, f := range it.Files {
		of[f.Name] = true
		err := check(filepath.Join(to, f.Name), f)
		var local *localError
		if errors.As(err, &local) && !errors.Is(err, fs.ErrNotExist) {
			return err
		} else if err != nil && local == nil {
			other = f.Name
		}
	}
	all, err := os.ReadDir(to)
	for _, e := range all {
		if name := e.Name(); !of[name] && !strings.HasPrefix(name, ".") && filepath.Ext(name) != ".part" {
			other = name
		}
	}
	if err != nil || other == "" {
		return err
	}
	return fmt.Errorf("%s has another commit of %s, which %s in it names: %s differs. Remove or rename the folder, and the "+
		"same command downloads the present commit", to, it.Name, catalogue.RecordName, other)
}

// lock waits until no other process has the file.
func lock(ctx context.Context, path, name string, log func(string, ...any)) (unlock func(), err error) {
	l, err := files.Lock(ctx, path, func() { log("another process gets %s: waiting for it", name) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return func() { l.Unlock(true) }, nil
}

// one brings a file to its place, if it is not there.
func one(ctx context.Context, it catalogue.Item, f catalogue.File, dir string, o *Options) error {
	path := it.Place(dir, f)
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
		if err := check(path, f); err != nil {
			return fmt.Errorf("%w; remove it, and the same command downloads it", err)
		}
		return nil
	}
	return download(ctx, it, f, dir, path, o)
}

// getArchive unpacks an archive that lies there, or downloads one.
func getArchive(ctx context.Context, it catalogue.Item, dir string, o *Options) error {
	to := it.Path(dir)
	if it.Here(dir) {
		return nil
	}
	f, own := it.Archives[0], true
	for _, a := range it.Archives {
		if st, err := os.Stat(it.Place(dir, a)); err == nil && st.Mode().IsRegular() {
			f, own = a, false
			break
		}
	}
	if err := one(ctx, it, f, dir, o); err != nil {
		return err
	}
	archive := it.Place(dir, f)
	o.Log("unpacking %s", archive)
	if err := unpack(ctx, archive, to, it.Unpacked); err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	if own {
		return os.Remove(archive)
	}
	return nil
}

// download tries the addresses of a file in turn.
func download(ctx context.Context, it catalogue.Item, f catalogue.File, dir, path string, o *Options) error {
	addresses := f.Addresses
	if o.Mirror != "" {
		addresses = []string{strings.TrimSuffix(o.Mirror, "/") + "/" + f.Name}
	}
	var failed []error
	for _, address := range addresses {
		d := &transfer{Options: o, file: f, address: address, path: path, part: path + ".part"}
		err := d.run(ctx)
		var local *localError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &local):
			return fmt.Errorf("%w; the part downloaded so far is kept: the same command goes on", local.err)
		}
		failed = append(failed, fmt.Errorf("%s: %w", redacted(address), err))
	}
	return &Failure{it, f, path, failed}
}

// redacted is an address without its password.
func redacted(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return address
}

// Failure explains why a file could not be downloaded, and how to provide it by hand.
type Failure struct {
	Item  catalogue.Item
	File  catalogue.File
	Place string // of the file
	Why   []error
}

func (e *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s cannot be downloaded:\n", e.File.Name)
	for _, err := range e.Why {
		fmt.Fprintf(&b, "  %v\n", err)
	}
	about := ""
	if e.File.Rough {
		about = "about "
	}
	var addresses []string
	for _, a := range e.File.Addresses {
		addresses = append(addresses, redacted(a))
	}
	fmt.Fprintf(&b, "To bring it by hand, download\n  %s\n", strings.Join(addresses, "\n  or "))
	fmt.Fprintf(&b, "  %s%d bytes, %s\n", about, e.File.Size, e.File.Sum())
	fmt.Fprintf(&b, "put it at\n  %s\nand run the same command", e.Place)
	return b.String()
}

func (e *Failure) Unwrap() []error { return e.Why }
