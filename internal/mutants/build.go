package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed switch.go.txt
var switchSource string

// A listed package is one of go list.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
}

// list returns the packages of the patterns and all that they import.
func list(patterns ...string) (map[string]listed, error) {
	var failed bytes.Buffer
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Name,Export,GoFiles"},
		patterns...)...)
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, failed.String())
	}
	all := map[string]listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
}

// exports reads the types of listed packages.
func exports(fset *token.FileSet, all map[string]listed) types.Importer {
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(all[path].Export)
	})
}

// build plants the faults of packages and builds their tests into folder: binaries by package.
func build(folder, module string, packages []string) ([]fault, error) {
	patterns := make([]string, len(packages))
	for i, p := range packages {
		patterns[i] = "./" + p
	}
	all, err := list(patterns...)
	if err != nil {
		return nil, err
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var faults []fault
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	write := func(at string, source []byte) error {
		file := filepath.Join(folder, fmt.Sprintf("%d.go", len(overlay.Replace)))
		overlay.Replace[at] = file
		return os.WriteFile(file, source, 0o600)
	}
	fset := token.NewFileSet()
	for _, name := range packages {
		p := all[module+"/"+name]
		var files []*ast.File
		var sources [][]byte
		for _, f := range p.GoFiles {
			source, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				return nil, err
			}
			parsed, err := parser.ParseFile(fset, filepath.Join(p.Dir, f), source, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files, sources = append(files, parsed), append(sources, source)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
			Uses: map[*ast.Ident]types.Object{}}
		if _, err := (&types.Config{Importer: exports(fset, all)}).Check(p.ImportPath, fset, files, info); err != nil {
			return nil, err
		}
		for i, f := range files {
			at := filepath.Join(p.Dir, p.GoFiles[i])
			relative, err := filepath.Rel(root, at)
			if err != nil {
				return nil, err
			}
			if err := write(at, plant(fset, info, f, sources[i], relative, &faults)); err != nil {
				return nil, err
			}
		}
		err := write(filepath.Join(p.Dir, "fault_switch.go"), []byte("package "+p.Name+"\n\n"+switchSource))
		if err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "overlay.json"), text, 0o600); err != nil {
		return nil, err
	}
	for _, name := range packages {
		cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(folder, "overlay.json"), "-o",
			binary(folder, name), "./"+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building the tests of %s with faults: %w: %s", name, err, out)
		}
	}
	return faults, nil
}

func binary(folder, name string) string {
	return filepath.Join(folder, strings.ReplaceAll(name, "/", "_")+".test")
}
