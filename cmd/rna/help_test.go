package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
)

// TestUnknownHelp: help and completion reject unknown words as the root does.
func TestUnknownHelp(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"help foo", `unknown command "foo"`}, {"help trian", `unknown command "trian", did you mean train?`},
		{"help bench trafic", `unknown command "trafic", did you mean traffic?`},
		{"help completion foo", `unknown command "foo"`}, {"help train x", `unknown command "x"`},
		{"completion foo", `unknown command "foo"`}, {"completion bsh", `unknown command "bsh", did you mean bash?`},
		{"completion bash x", `unexpected argument "x"`},
		{"train --resume", "option --resume needs a value: --resume FOLDER\n"},
		{"train -o", "option --out needs a value: --out FOLDER\n"},
		{"serve", "no weights: name a file of them, or the folder of a run\n"},
	} {
		if status := fails(t, strings.Fields(c.args), c.want); status != 2 {
			t.Errorf("rna %s: status %d", c.args, status)
		}
	}
	for args, want := range map[string]string{"help": "rna COMMAND", "help bench": "rna bench COMMAND",
		"help bench train": "rna bench train [options]", "help help": "rna help [COMMAND]",
		"completion": "rna completion COMMAND", "completion bash": "bash completion V2"} {
		if out := mustRun(t, strings.Fields(args)...); !strings.Contains(out, want) {
			t.Errorf("rna %s: no %q in\n%s", args, want, out)
		}
	}
	if _, out, _ := runRNA(t, "__complete", "help", "bench", ""); !strings.Contains(out, "traffic\t") {
		t.Errorf("rna help bench offers %s", out)
	}
}

// TestHelpWords: help calls options options, and that of plans shows one default of each.
func TestHelpWords(t *testing.T) {
	cli.EachCommand(newRoot(), func(cmd *cobra.Command) error {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		out := mustRun(t, args...)
		if strings.Contains(out, "flag") {
			t.Errorf("rna %s speaks of flags", strings.Join(args, " "))
		}
		return nil
	})
	out := mustRun(t, "plans", "--help")
	for _, option := range regexp.MustCompile(`\n +(-., )?--`).Split(out, -1) {
		if strings.Count(option, "(default") > 1 || strings.Contains(option, "device cpu") {
			t.Errorf("--%s", option)
		}
	}
}

// TestMisspeltNames: names of rna get that are nearly right get a hint.
func TestMisspeltNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"train --init resnt18": `resnt18: no such file or directory, did you mean resnet18 of "rna get"?`,
		"eval resnt18":         `resnt18: no such file or directory, did you mean resnet18 of "rna get"?`,
		"train --data cifr10":  `cifr10: no such file or directory, did you mean cifar10 of "rna get"?`,
		"lr-find --data mnits": `mnits: no such file or directory, did you mean mnist of "rna get"?`,
	} {
		fails(t, strings.Fields(args), want)
	}
	if err := os.Mkdir("runs", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"train --init resnt18.pth", "train --init runs/resnt18", "train --data my/cifr10"} {
		if _, _, stderr := runRNA(t, strings.Fields(args)...); strings.Contains(stderr, "rna get") {
			t.Errorf("rna %s: %s", args, stderr)
		}
	}
}
