package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPages checks the commands and options in the code lines of README.md and docs.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, page := range append(pages, "../../README.md") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			_, command, ok := strings.Cut(line, "bin/rna ")
			if !ok || !strings.HasPrefix(line, "    ") {
				continue
			}
			command, _, _ = strings.Cut(command, " #")
			command, _, _ = strings.Cut(command, ")") // of <(…)
			args := strings.Fields(strings.NewReplacer("'", "", `"`, "").Replace(command))
			n++
			root := newRoot()
			root.InitDefaultCompletionCmd(args...)
			cmd, rest, err := root.Find(args)
			if err != nil || !cmd.HasParent() {
				t.Errorf("%s: %q: %v", page, strings.TrimSpace(line), err)
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q: %v", page, strings.TrimSpace(line), err)
			}
		}
	}
	if n < 40 {
		t.Errorf("%d commands: the test does not see them", n)
	}
}

// TestTargets checks the make targets in README.md, docs and .ci/run.
func TestTargets(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("(?:`|    )make ([a-z0-9-]+)")
	n := 0
	for _, page := range append(pages, "../../README.md") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(b), -1) {
			n++
			if !targets[m[1]] {
				t.Errorf("%s names make %s, which the Makefile does not have", page, m[1])
			}
		}
	}
	if n < 10 {
		t.Errorf("%d targets: the test does not see them", n)
	}
}
