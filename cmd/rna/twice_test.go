package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/cmd/internal/cli"
)

// Every command that writes files can overwrite its own earlier files, by relative paths, in their folder,
// also if their names have 250 bytes.
func TestTwice(t *testing.T) {
	photos := photographs(t, 3, 40)
	t.Chdir(t.TempDir())
	for _, dir := range []string{"photos", "."} {
		if err := os.CopyFS(dir, os.DirFS(photos)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("table.csv", []byte("1,2,1\n-1,3,1\n1,1,0\n-1,4,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	mustRun(t, append([]string{"train", "--epochs", "3", "--out", "run", "-q", "--keep-every", "1", "--rna-window", "2"},
		quick...)...)
	mustRun(t, "sweep", "--set", "lr=0.1,0.2", "--epochs", "1", "--rna", "off", "-o", "sweep", "-q",
		"--limit-batches", "3", "--limit-val", "2", "--batch", "32")
	small := "--model lenet --batch 2 --steps 1 --threads 1 --device cpu"
	done := map[string]bool{}
	for _, c := range []struct{ args, outputs string }{
		{"extrapolate run/kept/epoch-0001.safetensors run/kept/epoch-0002.safetensors run/kept/epoch-0003.safetensors -o " +
			"out.safetensors --json-file out.json", "out.safetensors out.json"},
		{"merge run/kept/epoch-0001.safetensors run/kept/epoch-0002.safetensors -o merged.safetensors " +
			"--json-file merged.json", "merged.safetensors merged.json"},
		{"export run/best.safetensors -o net.onnx", "net.onnx"},
		{"extrapolate run/kept/epoch-0001.safetensors run/kept/epoch-0002.safetensors run/kept/epoch-0003.safetensors " +
			"-o out.pt", "out.pt"},
		{"convert run/best.safetensors best.pt", "best.pt"},
		{"convert run/best.safetensors -o best.pth", "best.pth"},
		{"eval --weights run/best.safetensors --data glyphs --predictions p.csv --confusion c.csv --worst worst.png " +
			"--json-file e.json", "p.csv c.csv worst.png e.json"},
		{"predict photos --weights run/best.safetensors --device cpu --sheet predicted.png --json-file predicted.json",
			"predicted.png predicted.json"},
		{"compare run run --plot runs.svg --csv runs.csv --json-file compared.json", "runs.svg runs.csv compared.json"},
		{"runs . --json-file runs.json", "runs.json"},
		{"report run sweep --device cpu -o page.html --model-card README.md", "page.html README.md"},
		{"report run", "run/report.html"},
		{"export-metrics run --steps -o metrics.csv", "metrics.csv"},
		{"sweep --resume sweep -q --plot sweep.svg --csv sweep.csv --json-file sweep.json", "sweep.svg sweep.csv sweep.json"},
		{"replay run --device cpu --csv replay.csv --plot replay.svg --json-file replay.json",
			"replay.csv replay.svg replay.json"},
		{"logreg --iterations 2 --methods gd --plot l.svg --csv l.csv", "l.svg l.csv"},
		{"logreg --data table.csv --iterations 2 --all-figures figures", "figures/deterministic-well.svg"},
		{"data check photos --quiet --json-file check.json", "check.json"},
		{"data check . --quiet --json-file photos.json", "photos.json"},
		{"data check photos --quiet --json-file photos/check.json", "photos/check.json"},
		{"data show photos --out show.png --image-size 8", "show.png"},
		{"data show photos --image-size 8", "sheet.png"},
		{"data show photos -o show.jpg --image-size 8", "show.jpg"},
		{"bench data photos --image-size 8 --seconds 0.01 --json-file data.json", "data.json"},
		{"bench train --warmup 1 --json-file bench.json --plot bench.svg " + small, "bench.json bench.svg"},
		{"bench rna --repeats 1 --window 2 --csv rna.csv --json-file rna.json --plot rna.svg " + small,
			"rna.csv rna.json rna.svg"},
		{"lr-find --steps 10 --batch 2 --threads 1 --device cpu --plot lr.svg --json-file lr.json", "lr.svg lr.json"},
		{"inspect run --json-file inspected.json", "inspected.json"},
		{"options --json-file options.json", "options.json"},
		{"devices --json-file devices.json", "devices.json"},
		{"bench scale --devices 8 --json-file scale.json", "scale.json"},
	} {
		args, outputs := strings.Fields(c.args), strings.Fields(c.outputs)
		for i, out := range outputs { // as long as a file system takes them, almost
			if k := slices.Index(args, out); k >= 0 {
				outputs[i] = filepath.Join(filepath.Dir(out), strings.Repeat("n", 250-len(filepath.Base(out)))+filepath.Base(out))
				args[k] = outputs[i]
			}
		}
		cmd, rest, err := newRoot().Find(args)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range rest {
			if name, ok := strings.CutPrefix(a, "--"); ok {
				done[cmd.CommandPath()+" --"+name] = true
			}
		}
		if slices.Contains(rest, "-o") {
			done[cmd.CommandPath()+" --out"] = true
		}
		for range 2 {
			if status, _, stderr := runRNA(t, args...); status != 0 {
				t.Errorf("rna %s: status %d, %s", c.args, status, stderr)
			}
			for _, out := range outputs {
				if st, err := os.Stat(out); err != nil || st.Size() == 0 {
					t.Errorf("rna %s: %s: %v", c.args, out, err)
				}
			}
		}
		for _, out := range outputs { // each run wrote it anew
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), ".*")); len(left) > 0 {
				t.Errorf("rna %s leaves %v", c.args, left)
			}
		}
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			option := c.CommandPath() + " --" + f.Name
			if kind, _ := pflag.UnquoteUsage(f); kind == "file" && slices.Contains(cli.Writes, f.Name) && !done[option] &&
				!elsewhere[option] {
				t.Errorf("%s is not among the commands of this test", option)
			}
		})
		for _, s := range c.Commands() {
			walk(s)
		}
	}
	walk(newRoot())
}

// elsewhere are options that need a GPU build or several processes.
var elsewhere = map[string]bool{"rna bench comm --json-file": true, "rna bench traffic --json-file": true,
	"rna bench traffic --csv": true, "rna plans --json-file": true, "rna devices --properties": true}
