package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder notes the failures of a test instead of failing.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// failures returns the failures that a comparison reports.
func failures(compare func(t testing.TB, name, got string), name, got string) string {
	var r recorder
	compare(&r, name, got)
	return strings.Join(r.failures, "\n")
}

// TestDifference: both comparisons find a difference wherever it is, and say where.
func TestDifference(t *testing.T) {
	t.Setenv(Write, "")
	t.Chdir(t.TempDir())
	file := filepath.Join("testdata", "golden", "folder", "text")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 300)
	if err := os.WriteFile(file, []byte("a 1\nloss=0.25, "+long+"\n\nend\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		got, check, numbers string // parts of the reports, "" for none
	}{
		{"a 1\nloss=0.25, " + long + "\n\nend\n", "", ""},
		{"a 1\nloss=0.2500000000001, " + long + "\n\nend\n", "text:2 differs from byte 10 on", ""},
		{"a 1\nloss=0.2500001, " + long + "\n\nend\n", "text:2 differs from byte 10 on", "text:2 differs from byte 10 on"},
		{"a 2\nloss=0.25, " + long + "\n\nend\n", "got\n\ta 2\nwant\n\ta 1", "got\n\ta 2\nwant\n\ta 1"},
		{"a -1\nloss=0.25, " + long + "\n\nend\n", "text:1 ", "text:1 "},
		{"a 1\nloss=0.25, y" + long + "\n\nend\n", "text:2 differs from byte 12 on", "text:2 "},
		{"a 1\nloss=0.25, " + long + "z\n\nend\n", "got\n\t…" + strings.Repeat("x", 80) + "z\n", "z\n"},
		{"a 1\nloss=0.25, " + long + "\n\nend", "text:5: the text ends", "text:5: the text ends"},
		{"a 1\nloss=0.25, " + long + "\n\nend\n\n", "ends before line 6", "ends before line 6"},
	} {
		for _, c := range []struct{ got, want string }{{failures(Check, "folder/text", k.got), k.check},
			{failures(Numbers, "folder/text", k.got), k.numbers}} {
			if !strings.Contains(c.got, c.want) || (c.got == "") != (c.want == "") {
				t.Errorf("%.20q: report %q, want %q", k.got, c.got, c.want)
			}
		}
	}
	if got := failures(Check, "nothing", ""); !strings.Contains(got, "nothing") || !strings.Contains(got, Write+"=1") {
		t.Errorf("no file: %q", got)
	}
}

// TestWrite: files are written if the environment says so, and that is a failure.
func TestWrite(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(Write, "1")
	for _, compare := range []func(t testing.TB, name, got string){Check, Numbers} {
		if got := failures(compare, "a/b.txt", "1\n"); !strings.Contains(got, "is written") {
			t.Errorf("report %q", got)
		}
	}
	t.Setenv(Write, "")
	if got := failures(Check, "a/b.txt", "1\n"); got != "" {
		t.Errorf("report %q", got)
	}
}

func TestNear(t *testing.T) {
	for _, k := range []struct {
		got, want string
		near      bool
	}{
		{"", "", true},
		{"1", "1.0000000005", true},
		{"1", "1.000000002", false},
		{"1e-13 -0", "0 0", true},
		{"1e-11", "0", false},
		{"[1,2]", "[1 2]", false},
		{"#1", "1#", false},
		{"1 2", "1 2 3", false},
		{"NaN Inf", "NaN Inf", true},
		{"NaN", "1", false},
		{"1e999", "1e999", true},
		{"1e999", "1e998", false},
		{"1e999", "1", false},
		{"M.5-3E2", "M0.5-300", true},
	} {
		if got := near(k.got, k.want); got != k.near {
			t.Errorf("near(%q, %q) = %v", k.got, k.want, got)
		}
	}
}
