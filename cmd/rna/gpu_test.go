//go:build gpu

package main

import (
	"debug/elf"
	"os"
	"strings"
	"testing"
)

// The program must start on a machine without NVIDIA libraries.
func TestNothingIsLinked(t *testing.T) {
	f, err := elf.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil || len(needed) == 0 {
		t.Fatalf("libraries %q, %v", needed, err)
	}
	for _, l := range needed {
		if strings.HasPrefix(l, "libcu") || strings.HasPrefix(l, "libnv") {
			t.Errorf("the program needs %s", l)
		}
	}
}
