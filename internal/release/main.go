// Command release builds rna for other systems, without cgo: an archive for each, with manual pages, completions and
// the list of modules (SBOM), an image for containers, and their checksums.
//
//	release -out bin/release -version v1.2.3 -targets linux/amd64,windows/arm64
//
// Equal sources and an equal version of Go give equal bytes, in any folder and at any time.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// release has the parts that all archives share.
type release struct {
	out, version, commit string
	when                 time.Time // of the commit
	common               []entry   // beside the program
}

// program is rna for a system.
type program struct {
	system, processor string
	binary            []byte
	sbom              []byte
}

func main() {
	out := flag.String("out", "bin/release", "`folder` to write")
	version := flag.String("version", "", "version (default: git describe)")
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64",
		"systems and processors")
	flag.Parse()
	if err := run(*out, *version, strings.Split(*targets, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(out, version string, targets []string) error {
	r := &release{out: out}
	if err := r.source(version); err != nil {
		return err
	}
	if old, _ := filepath.Glob(filepath.Join(out, "*")); len(old) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or choose another folder by -out", out)
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := r.documents(work); err != nil {
		return err
	}
	var programs []*program
	for _, t := range targets {
		system, processor, ok := strings.Cut(t, "/")
		if !ok {
			return fmt.Errorf("target %q: want system/processor, as linux/amd64", t)
		}
		p, err := r.build(work, system, processor)
		if err != nil {
			return err
		}
		programs = append(programs, p)
		if err := r.archive(p); err != nil {
			return err
		}
	}
	images := slices.DeleteFunc(programs, func(p *program) bool { return p.system != "linux" })
	if len(images) > 0 {
		if err := r.image(images); err != nil {
			return err
		}
	}
	return r.checksums()
}

// source finds the commit of the sources and its time, which files of the release have.
func (r *release) source(version string) error {
	git := func(args ...string) string {
		b, _ := exec.Command("git", args...).Output()
		return strings.TrimSpace(string(b))
	}
	r.commit = git("rev-parse", "HEAD")
	r.version = cmp.Or(version, git("describe", "--tags", "--always", "--dirty"), "devel")
	if strings.ContainsAny(r.version, "/\\ '\"") {
		return fmt.Errorf("version %q: want a word such as v1.2.3", r.version)
	}
	seconds := cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), git("show", "-s", "--format=%ct", "HEAD"), "315532800")
	var n int64
	if _, err := fmt.Sscan(seconds, &n); err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds since 1970", seconds)
	}
	r.when = time.Unix(n, 0).UTC()
	return nil
}

// compile builds rna.
func (r *release) compile(path, system, processor string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version="+
		r.version+" -X main.commit="+r.commit, "-o", path, "./cmd/rna")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor, "GOFLAGS=", "GOAMD64=v1",
		"GOARM64=v8.0", "GOEXPERIMENT=")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s/%s: go build: %w", system, processor, err)
	}
	return nil
}

func (r *release) build(work, system, processor string) (*program, error) {
	path := filepath.Join(work, "rna-"+system+"-"+processor)
	if err := r.compile(path, system, processor); err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, err
	}
	sbom, err := r.sbom(info, sha256.Sum256(binary))
	return &program{system, processor, binary, sbom}, err
}

// documents collects the files that are equal for all systems: the licence, README.md, manual pages and completions.
// rna writes the last two itself.
func (r *release) documents(work string) error {
	host := filepath.Join(work, "host")
	if err := r.compile(host, runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		r.common = append(r.common, entry{name, b, 0o644})
	}
	man := filepath.Join(work, "man")
	if b, err := exec.Command(host, "man", man).CombinedOutput(); err != nil {
		return fmt.Errorf("rna man: %w: %s", err, b)
	}
	err := fs.WalkDir(os.DirFS(man), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(man, path))
		r.common = append(r.common, entry{"man/man1/" + path, b, 0o644})
		return err
	})
	if err != nil {
		return err
	}
	for shell, name := range map[string]string{"bash": "rna.bash", "zsh": "_rna", "fish": "rna.fish",
		"powershell": "rna.ps1"} {
		b, err := exec.Command(host, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("rna completion %s: %w", shell, err)
		}
		r.common = append(r.common, entry{"completions/" + name, b, 0o644})
	}
	return nil
}

// checksums writes SHA256SUMS, which sha256sum -c reads.
func (r *release) checksums() error {
	names, err := filepath.Glob(filepath.Join(r.out, "*"))
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, path := range names { // sorted
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), filepath.Base(path))
	}
	fmt.Print(b.String())
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o666)
}
