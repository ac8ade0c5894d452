// Command typecheck checks the types of packages, and of all that they import, from source, for other systems than this
// one:
//
//	typecheck darwin/arm64,windows/amd64 ./...
//
// It finds the errors of go build, except those of assembly and linking, and compiles nothing.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: typecheck system/processor,... packages")
		os.Exit(2)
	}
	var errs []error
	for target := range strings.SplitSeq(os.Args[1], ",") {
		errs = append(errs, check(".", target, os.Args[2:]))
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// listed is the output of go list for a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
	Error           *struct{ Err string }
}

// check checks packages, patterns of go list in a folder, for a target such as windows/amd64. Bodies of functions of
// other modules are left out.
func check(folder, target string, patterns []string) error {
	system, processor, ok := strings.Cut(target, "/")
	if !ok {
		return fmt.Errorf("target %q: want a system and a processor, such as windows/amd64", target)
	}
	cmd := exec.Command("go", append([]string{"list", "-e", "-deps",
		"-json=ImportPath,Dir,GoFiles,ImportMap,Module,Error", "--"}, patterns...)...)
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c := checker{target: target, files: token.NewFileSet(), done: map[string]*types.Package{"unsafe": types.Unsafe},
		sizes: types.SizesFor("gc", processor)}
	for list := json.NewDecoder(out); ; { // imported packages come first
		var p listed
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			c.fail(err)
			break
		}
		c.add(&p)
	}
	return errors.Join(append(c.errs, cmd.Wait())...)
}

// checker has the packages of a target that have been checked.
type checker struct {
	target string
	files  *token.FileSet
	sizes  types.Sizes
	done   map[string]*types.Package
	errs   []error
}

func (c *checker) fail(err error) { c.errs = append(c.errs, fmt.Errorf("%s: %w", c.target, err)) }

// add checks a package whose imports have been checked.
func (c *checker) add(p *listed) {
	if p.ImportPath == "unsafe" {
		return
	}
	if p.Error != nil {
		c.fail(errors.New(strings.TrimSpace(p.Error.Err)))
		return
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			c.fail(err)
			return
		}
		files = append(files, f)
	}
	config := types.Config{Importer: imports{c, p}, IgnoreFuncBodies: p.Module == nil || !p.Module.Main,
		Sizes: c.sizes, Error: c.fail}
	c.done[p.ImportPath], _ = config.Check(p.ImportPath, c.files, files, nil) // Error has them
}

// imports finds the imports of a package.
type imports struct {
	*checker
	p *listed
}

func (i imports) Import(path string) (*types.Package, error) {
	if mapped, ok := i.p.ImportMap[path]; ok {
		path = mapped
	}
	if p := i.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s has not been checked", path)
}
