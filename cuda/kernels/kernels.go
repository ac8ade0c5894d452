//go:build gpu && cgo

// Package kernels contains the CUDA C++ sources of nets and spaces and generates those of elementwise expressions. It
// uses no GPU: package nvrtc compiles the sources.
package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"onlinerna/cuda/internal/cache"
)

//go:embed *.cu *.h
var files embed.FS

// RNA is the source of RNA's kernels.
func RNA() string {
	b, err := files.ReadFile("rna.cu")
	if err != nil {
		panic(err) // the file is embedded
	}
	return string(b)
}

// Net is a source for nets, after its headers, among them one of its own name, and its options. store is the element
// type: 0 float32, 1 bfloat16, 2 float16.
func Net(file string, store int) (source string, options []string, err error) {
	list := []string{file}
	if head := strings.TrimSuffix(file, ".cu") + ".h"; exists(head) {
		list = []string{head, file}
	}
	body, err := numbered(list...)
	if err != nil {
		return "", nil, err
	}
	return WithStore(body, store)
}

func exists(name string) bool {
	_, err := fs.Stat(files, name)
	return err == nil
}

// numbered concatenates files, with their names and line numbers for messages.
func numbered(names ...string) (string, error) {
	var all strings.Builder
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&all, "#line 1 \"%s\"\n%s\n", name, b)
	}
	return all.String(), nil
}

// WithStore prepends store.h, which reads and writes elements, to a source. store is as for Net.
func WithStore(source string, store int) (string, []string, error) {
	head, err := files.ReadFile("store.h")
	return fmt.Sprintf("#line 1 \"store.h\"\n%s\n%s", head, source), []string{fmt.Sprintf("-DSTORE=%d", store)}, err
}

// Names lists the sources: rna.cu, and those of Net.
func Names() ([]string, error) { return fs.Glob(files, "*.cu") }

// Digest is a hash of all sources.
var Digest = sync.OnceValue(func() string {
	var all []string
	for _, pattern := range []string{"*.cu", "*.h"} {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			panic(err) // the pattern is malformed
		}
		for _, name := range names {
			b, err := files.ReadFile(name)
			if err != nil {
				panic(err) // the file is embedded
			}
			all = append(all, name, string(b))
		}
	}
	return cache.Digest(all...)
})
