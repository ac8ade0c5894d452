package cli

import (
	"runtime/debug"
	"strings"
	"testing"
)

// TestBuilt: the version names the commit.
func TestBuilt(t *testing.T) {
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
		{Key: "vcs.modified", Value: "true"}, {Key: "-tags", Value: "gpu"},
	}}
	info.Main.Version = "v1.2.3"
	first, _, _ := strings.Cut(BuiltFrom(info).String(), "\n")
	if want := "rna v1.2.3, commit 0123456789ab of 2026-01-02, with changes"; first != want {
		t.Errorf("%q, want %q", first, want)
	}
	if s := BuiltFrom(info).String(); !strings.HasSuffix(s, ", tags gpu\n") {
		t.Errorf("%q", s)
	}
	if s := BuiltFrom(nil).String(); !strings.HasPrefix(s, "rna (devel), unknown commit\n") {
		t.Errorf("%q", s)
	}
}

// TestRoff: characters that roff interprets stand for themselves.
func TestRoff(t *testing.T) {
	if got := roff("a\n.b\n'c \\d -e"); got != "a\n\\&.b\n\\(aqc \\ed \\-e" {
		t.Errorf("%q", got)
	}
}
