package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	a, b, pdf := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "runs.pdf")
	for run, rate := range map[string]string{a: "0.05", b: "0.02"} {
		mustRun(t, append([]string{"train", "--epochs", "2", "--lr", rate, "-o", run, "-q", "--rna", "off"}, quick[:6]...)...)
	}
	out := mustRun(t, "compare", a, b+"/", "--plot", pdf)
	for _, want := range []string{"A  a\n", "B  b\n", "B − A, the last epoch: error", "lr-final", "0.02"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if x, err := os.ReadFile(pdf); err != nil || !strings.HasPrefix(string(x), "%PDF-") {
		t.Errorf("the figure begins with %.8q, %v", x, err)
	}
	for want, args := range map[string][]string{
		"2 to 26":          {a},
		"no folder of":     {a, dir},
		".svg, .png, .pdf": {a, b, "--plot", filepath.Join(dir, "x.jpg")},
	} {
		fails(t, append([]string{"compare"}, args...), want)
	}
}
