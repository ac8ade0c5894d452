// Package docs holds the tests of README.md and of the pages beside them.
package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// root is the repository's folder.
const root = ".."

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pages returns the paths of README.md and of all pages.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*.md")
	if err != nil || len(found) < 8 {
		t.Fatalf("%d pages, %v", len(found), err)
	}
	return append(found, filepath.Join(root, "README.md"))
}

// anchor returns the name of a heading in links, as GitHub makes it.
func anchor(heading string) string {
	kept := strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' {
			return '-'
		}
		if r == '_' || strings.ContainsRune("àéö", r) || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, strings.ToLower(heading))
	return kept
}

// TestLinks follows each relative link of README.md and of the pages, to its heading if it names one. README.md links to every page.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	n := 0
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			n++
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
				continue
			}
			if heading == "" {
				continue
			}
			found := false
			for line := range strings.Lines(read(t, path)) {
				title := strings.TrimLeft(line, "#")
				found = found || len(title) < len(line) && anchor(strings.TrimSpace(title)) == heading
			}
			if !found {
				t.Errorf("%s links to %s: %s has no such heading", page, m[1], path)
			}
		}
	}
	readme := read(t, filepath.Join(root, "README.md"))
	for _, page := range pages(t) {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(readme, "](docs/"+name+")") {
			t.Errorf("README.md does not link to %s", page)
		}
	}
	if n < 20 {
		t.Errorf("%d links: the test does not see them", n)
	}
}

// TestLengths keeps README.md at 200 lines of 120 characters, and pages at that width outside tables and code.
func TestLengths(t *testing.T) {
	for _, page := range pages(t) {
		text := read(t, page)
		if lines := strings.Count(text, "\n"); strings.HasSuffix(page, "README.md") && lines > 200 {
			t.Errorf("README.md has %d lines, 200 at most", lines)
		}
		i := 0
		for line := range strings.Lines(text) {
			i++
			line = strings.TrimSuffix(line, "\n")
			wide := strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ")
			if n := utf8.RuneCountInString(line); n > 120 && !wide {
				t.Errorf("%s:%d has %d characters, 120 at most", page, i, n)
			}
		}
	}
}

// TestIntroductions wants a title and a first paragraph about the purpose of each page.
func TestIntroductions(t *testing.T) {
	for _, page := range pages(t) {
		if strings.HasSuffix(page, "README.md") {
			continue
		}
		if !regexp.MustCompile(`\A(<!--[^\n]*-->\n)?# .+\n\nThis page `).MatchString(read(t, page)) {
			t.Errorf("%s does not begin with a title and a paragraph that says \"This page …\"", page)
		}
	}
}

// programs returns the Go programs of a page.
func programs(text string) (all []string) {
	for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// libraryPrints are the outputs of the programs of library.md, in order.
var libraryPrints = []string{
	`^\[0 0\.941\d+\] \[0 0\.0196\d+\] ok <nil>\n$`,
	`^(epoch \d: error of SGD \d+\.\d %\n){6}$`,
	`^probability of red: 0\.9\d+ <nil>\n$`,
	`^0\.817\d+ -?\d(\.\d+)?e-0[3-9]\n$`,
}

// TestPrograms builds all programs of README.md and of the pages in a module of their own, without a network, and runs
// README's and those of library.md.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	t.Parallel()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, requires, _ := strings.Cut(read(t, filepath.Join(root, "go.mod")), "\nrequire (")
	put("go.mod", "module outside\n\ngo 1.25.0\n\nrequire onlinerna v0.0.0\n\nreplace onlinerna => "+top+"\n\nrequire ("+requires)
	put("go.sum", read(t, filepath.Join(root, "go.sum")))
	own, n := "", 0
	for _, page := range pages(t) {
		for i, program := range programs(read(t, page)) {
			name := fmt.Sprintf("%s%d", strings.ToLower(strings.TrimSuffix(filepath.Base(page), ".md")), i)
			if !strings.HasPrefix(program, "package main\n") {
				t.Errorf("%s: program %d does not begin with package main", page, i)
			}
			if strings.Contains(program, "nn.Register(") && strings.HasSuffix(page, "README.md") {
				own = name
				if lines := strings.Count(program, "\n"); lines > 30 {
					t.Errorf("the README's net of its own has %d lines, 30 at most", lines)
				}
			}
			put(filepath.Join(name, "main.go"), program)
			n++
		}
	}
	if n < 4 || own == "" {
		t.Fatalf("%d programs, README's own is %q: the test does not see them", n, own)
	}
	call := func(dir, name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod -buildvcs=false -trimpath", "GOWORK=off", "CGO_ENABLED=0")
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out.String(), stderr.String())
		}
		return out.String()
	}
	bin := t.TempDir()
	call(dir, "go", "vet", "./...")
	call(dir, "go", "build", "-o", bin, "./...")
	out := call(t.TempDir(), filepath.Join(bin, own))
	if strings.Count(out, "\nepoch ") != 5 || !strings.HasSuffix(out, "error: <nil>\n") {
		t.Errorf("README's net of its own prints\n%s", out)
	}
	if n := len(programs(read(t, "library.md"))); n != len(libraryPrints) {
		t.Fatalf("library.md has %d programs, and libraryPrints %d outputs", n, len(libraryPrints))
	}
	for i, want := range libraryPrints {
		out := call(t.TempDir(), filepath.Join(bin, fmt.Sprint("library", i)))
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("program %d of library.md prints\n%swant %s", i, out, want)
		}
	}
}

// TestEnvironment compares the table of environment variables with the variables that the code names.
func TestEnvironment(t *testing.T) {
	text := read(t, "environment.md")
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(text, -1) {
		for _, v := range regexp.MustCompile("`([A-Z0-9_]+)`").FindAllStringSubmatch(m[1], -1) {
			listed[v[1]] = true
		}
	}
	used := map[string]bool{}
	name := regexp.MustCompile(`"((?:RNA|ONLINERNA|SOAK)_[A-Z0-9_]+)"|getenv\("(RNA_[A-Z0-9_]+)"\)`)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "runs") {
			return filepath.SkipDir
		}
		switch filepath.Ext(path) {
		case ".go", ".cc", ".h":
			if filepath.Base(path) == "docs_test.go" {
				return nil
			}
			for _, m := range name.FindAllStringSubmatch(read(t, path), -1) {
				if v := m[1] + m[2]; !strings.Contains(v, "_TEST_") { // those are between a test and its processes
					used[v] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for v := range used {
		if !listed[v] {
			t.Errorf("environment.md does not list %s", v)
		}
	}
	for v := range listed {
		if (strings.HasPrefix(v, "RNA_") || strings.HasPrefix(v, "ONLINERNA_") || strings.HasPrefix(v, "SOAK_")) && !used[v] {
			t.Errorf("environment.md lists %s, which nothing reads", v)
		}
	}
}
