package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/cmd/internal/cli"
)

// TestCompletions checks the shell completions of values.
func TestCompletions(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"train --schedule ", []string{"cosine", "one-cycle", ":4"}},
		{"train --recipe ", []string{"rsb-a3", ":4"}},
		{"train --device ", []string{"auto", "cpu", "cuda:all", ":4"}},
		{"train --optimizer ", []string{"adamw", "sgd", ":4"}},
		{"eval --model resnet1", []string{"resnet18", "resnet101", ":4"}},
		{"replay --precision ", []string{"bfloat16", "float32", ":4"}},
		{"logreg --methods gd,", []string{"gd,lbfgs", ":6"}},
		{"train --resume ", []string{":16"}},
		{"train --init ", []string{":0"}},
		{"train --epochs ", []string{":4"}},
		{"train ", []string{":4"}},
		{"predict ", []string{":0"}},
		{"data ", []string{"show\tDraw images as the network sees them", ":4"}},
		{"completion ", []string{"bash\tGenerate the autocompletion script for bash", ":4"}},
	} {
		args := strings.Split(c.line, " ")
		_, out, _ := runRNA(t, append([]string{"__complete"}, args...)...)
		got := strings.Split(out, "\n")
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("rna %s offers %q, not %q", c.line, got, w)
			}
		}
		if len(c.want) == 1 && len(got) > 2 {
			t.Errorf("rna %s offers %q", c.line, got)
		}
	}
	if _, got, _ := runRNA(t, "__complete", "logreg", "--methods", "gd,"); strings.Contains(got, "gd,gd\n") {
		t.Errorf("a method is offered twice: %s", got)
	}
}

// freeText are text options whose values are neither from a list nor files.
var freeText = []string{"mirror", "key", "freeze", "no-decay", "data"}

// TestEveryWordCompletes: text options list their values, unless they take files or any text.
func TestEveryWordCompletes(t *testing.T) {
	cli.EachCommand(newRoot(), func(cmd *cobra.Command) error {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			kind, _ := pflag.UnquoteUsage(f)
			isText := f.Value.Type() == "string" || f.Value.Type() == "stringSlice"
			if isText && f.Annotations[cli.ValuesKey] == nil && !slices.Contains(freeText, f.Name) &&
				!slices.Contains([]string{"file", "folder", "place", "path"}, kind) {
				t.Errorf("%s --%s: the shell completes nothing: list its values where it is defined", cmd.CommandPath(), f.Name)
			}
		})
		return nil
	})
}

// TestBash completes a line in bash itself.
func TestBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	script := mustRun(t, "completion", "bash")
	if err := os.WriteFile(filepath.Join(dir, "completion"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(dir, "rna")); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(bash, "--norc", "-c", `. ./completion
COMP_WORDS=(./rna train --schedule co) COMP_CWORD=3 COMP_LINE="./rna train --schedule co" COMP_POINT=25 COMP_TYPE=9
_get_comp_words_by_ref() { :; }; _init_completion() { cur=co prev=--schedule words=("${COMP_WORDS[@]}") cword=3; }
__start_rna; printf '%s\n' "${COMPREPLY[@]}"`)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), rankVar+"=1")
	out, err := cmd.Output()
	if err != nil || strings.Join(strings.Fields(string(out)), " ") != "constant cosine" {
		t.Errorf("bash completes %q, %v", out, err)
	}
}

// TestMan writes the pages twice into one folder.
func TestMan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	mustRun(t, "man", dir)
	if out := mustRun(t, "man", dir); !strings.Contains(out, "pages") {
		t.Error(out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "rna-train.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".TH RNA\\-TRAIN 1", "\n.SH SYNOPSIS\n\\fBrna train\\fR [options]\n",
		"\n.SS Optimiser\n", "\n\\fB\\-\\-weight\\-decay\\fR \\fInumber\\fR\n", "\n.BR rna (1),\n"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("rna-train.1 has no %q", want)
		}
	}
	for line := range strings.Lines(string(b)) {
		if (line[0] == '.' || line[0] == '\'') && !slices.Contains([]string{".TH", ".nh", ".ad", ".SH", ".SS", ".TP", ".PP",
			".EX", ".EE", ".BR"}, strings.Fields(line)[0]) {
			t.Errorf("no request: %q", line)
		}
	}
	if status, _, stderr := runRNA(t, "man"); status != 2 || !strings.Contains(stderr, "want the folder") {
		t.Errorf("%d, %s", status, stderr)
	}
}
