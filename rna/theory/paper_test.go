package theory

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folders maps the packages of names in the table to their folders.
var folders = map[string]string{"": ".", "rna": "..", "convex": "../convex", "study": "../convex/study",
	"train": "../../train", "cmd": "../../cmd/rna"}

// declared lists the exported names and the tests in a folder: of train in all below it, of others in itself.
func declared(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files := token.NewFileSet()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != folder && folder != "../../train" {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					of := d.Recv.List[0].Type
					if star, ok := of.(*ast.StarExpr); ok {
						of = star.X
					}
					if id, ok := of.(*ast.Ident); ok {
						name = id.Name + "." + name
					}
				}
				names[name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names[spec.Name.Name] = true
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Every function and test that the table of the package's documentation names exists.
func TestPaper(t *testing.T) {
	text, err := os.ReadFile("paper.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]map[string]bool{}
	rows, tests := 0, map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.TrimPrefix(line, "//\t"), "|")
		if len(cells) != 3 || strings.HasPrefix(line, "//\tstatement") {
			continue
		}
		rows++
		for column, cell := range cells[1:] {
			for _, name := range strings.Split(cell, ",") {
				name = strings.TrimSpace(name)
				folder, local, found := strings.Cut(name, ".")
				if _, isFolder := folders[folder]; !found || !isFolder {
					folder, local = "", name
				}
				if known[folder] == nil {
					known[folder] = declared(t, folders[folder])
				}
				isTest := strings.HasPrefix(local, "Test")
				if !known[folder][local] || isTest != (column == 1) ||
					!ast.IsExported(strings.ReplaceAll(local, ".", "")) {
					t.Errorf("row %d, %s: no %s among %d names of %s", rows, strings.TrimSpace(cells[0]), name,
						len(known[folder]), folders[folder])
				}
				if isTest {
					tests[name] = true
				}
			}
		}
	}
	if rows != 45 {
		t.Errorf("%d rows, want 45", rows)
	}
	t.Logf("%d rows, by %d tests: %v", rows, len(tests), slices.Sorted(maps.Keys(tests)))
}
