// Package machine describes the computer and the program that run.
package machine

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine describes a computer and the program on it. Unknown texts are empty, unknown numbers 0.
type Machine struct {
	System  string `json:"system"` // as linux/amd64
	CPU     string `json:"cpu,omitempty"`
	Cores   int    `json:"cores"` // that this process may use
	Memory  int64  `json:"memory,omitempty"`
	Version string `json:"version"` // of the program, with the start of its commit if that is known
	Go      string `json:"go"`
}

// This describes the computer and the program.
func This() Machine {
	return Machine{System: runtime.GOOS + "/" + runtime.GOARCH, CPU: CPU(), Cores: runtime.NumCPU(), Memory: memory(),
		Version: version(), Go: runtime.Version()}
}

// version is that of the main module. One with a commit in it needs no other.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	for _, s := range info.Settings {
		if commit := s.Value[:min(12, len(s.Value))]; s.Key == "vcs.revision" && !strings.Contains(v, commit) {
			v += ", commit " + commit
		}
	}
	return v
}

// Field returns the value of the first line "name : value" of a file; empty if there is none.
func Field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
