package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example\n\ngo 1.21\n",
		"a/a.go": "package a\n\nimport \"os\"\n\nfunc Size(f os.FileInfo) int64 { return size(f) }\n",
		"a/a_linux.go": "package a\n\nimport (\n\t\"os\"\n\t\"syscall\"\n)\n\nfunc size(f os.FileInfo) int64 { " +
			"return f.Sys().(*syscall.Stat_t).Blocks }\n",
		"a/a_windows.go": "package a\n\nimport (\n\t\"os\"\n\t\"syscall\"\n)\n\nfunc size(f os.FileInfo) int64 { " +
			"return f.Sys().(*syscall.Stat_t).Blocks }\n",
		"b/b.go": "package b\n\nimport \"example/a\"\n\nvar Size = a.Size\n",
		"c/c.go": "package c\n\nimport _ \"example/none\"\n",
		"e/e.go": "package e\n\nconst Big int = 1 << 40\n",
	} {
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ target, pattern, want string }{
		{"linux/amd64", "./b", ""},
		{"linux/arm64", "./b", ""},
		{"windows/amd64", "./b", "a_windows.go:8:59: undefined: syscall.Stat_t"},
		{"darwin/arm64", "./b", "a.go:5:41: undefined: size"},
		{"linux/amd64", "./c", "none"},
		{"linux/amd64", "./d", "/d: directory not found"},
		{"linux/amd64", "./e", ""},
		{"linux/386", "./e", "e.go:3:17: cannot use 1 << 40"},
		{"linux", "./b", "want a system and a processor"},
	} {
		err := check(folder, c.target, []string{c.pattern})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v, want %q", c.pattern, c.target, err, c.want)
		}
	}
}
