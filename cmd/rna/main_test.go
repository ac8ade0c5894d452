package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/train"
)

// runRNA runs a command line in its own folder.
func runRNA(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(t.Context(), args, &out, &err)
	return status, out.String(), err.String()
}

// mustRun fails the test unless the command succeeds with empty stderr.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	status, out, err := runRNA(t, args...)
	if status != 0 || err != "" {
		t.Fatalf("rna %s: status %d, stderr %q", strings.Join(args, " "), status, err)
	}
	return out
}

// fails runs a command that must fail with an error containing want; it returns the status.
func fails(t *testing.T, args []string, want string) int {
	t.Helper()
	status, _, err := runRNA(t, args...)
	if status == 0 || !strings.Contains(err, want) {
		t.Errorf("rna %s: status %d, stderr %q, want %q", strings.Join(args, " "), status, err, want)
	}
	return status
}

// quick are options for a training of one second.
var quick = []string{"--limit-batches", "3", "--limit-val", "2", "--batch", "32", "--rna-start", "1", "--averages", "2"}

func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	empty := t.TempDir()
	text := filepath.Join(dir, "weights.safetensors")
	if err := os.WriteFile(text, []byte("these are no weights"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		status int
		want   []string
	}{
		{"trian", 2, []string{`unknown command "trian"`, "did you mean train?", "rna --help"}},
		{"train --epoch 3", 2, []string{"unknown option --epoch", "did you mean --epochs?", "rna train --help"}},
		{"train --lr fast", 2, []string{"--lr fast: want a number"}},
		{"train --epochs 1.5", 2, []string{"--epochs 1.5: want a whole number"}},
		{"train --epochs -3", 2, []string{"--epochs -3: must be at least 1"}},
		{"train --wd 1e-4", 2, []string{"--weight-decay"}},
		{"train --learning-rate 0.1", 2, []string{"unknown option --learning-rate: here it is --lr\n"}},
		{"train --imgsz 224", 2, []string{"here it is --image-size"}},
		{"eval --imgsz 224", 2, []string{"here it is --image-size"}},
		{"train --gpu 1", 2, []string{"here it is --device cuda"}},
		{"eval --gpu 1", 2, []string{"here it is --device cuda"}},
		{"train --name x", 2, []string{"--out runs/NAME"}},
		{"train --project x", 2, []string{"--out PROJECT/NAME"}},
		{"train --wandb", 2, []string{"here it is --tensorboard; metrics.jsonl"}},
		{"train -b 3", 2, []string{"unknown option -b", "--batch"}},
		{"train --weights x.pth", 2, []string{"unknown option --weights: here it is --init FILE"}},
		{"plans --batch 0", 1, []string{"batch 0", "want 1 or more"}},
		{"bench traffic --device cpu", 1, []string{"device cpu does not report its work"}},
		{"export --weights x.pth", 2, []string{"unknown option --weights: here the file stands without an option"}},
		{"train --recipe rsb-a4", 2, []string{"did you mean rsb-a", "ffcv-88"}},
		{"train --optimizer lamb --eps -1", 1, []string{"at least 0"}},
		{"train extra", 2, []string{`unexpected argument "extra"`}},
		{"eval", 2, []string{"--weights is missing"}},
		{"train --resume x --lr 1", 2, []string{"does not take --lr"}},
		{"train --model resnet5", 1, []string{`"resnet5"`, "did you mean one of resnet50"}},
		{"train --device gpu", 1, []string{`unknown device "gpu", did you mean cuda?`, "reference"}},
		{"train --schedule cos", 2, []string{"did you mean cosine?"}},
		{"eval x.safetensors --json e.json", 2, []string{"--json takes no file: it prints; --json-file e.json writes one"}},
		{"bench train --json b.json", 2, []string{"--json takes no file: it prints; --json-file b.json writes one"}},
		{"predict x.jpg --weights x.safetensors --csv p.csv", 2, []string{"--csv takes no file: it prints; > p.csv"}},
		{"replay " + dir + " --json r.json", 2, []string{"--json takes no file"}},
		{"train --config none.yaml", 2, []string{"rna: none.yaml: no such file or directory\n"}},
		{"eval " + empty, 1, []string{empty +
			" is a folder, not a file, and has no run in it: there is no config.json of one"}},
		{"train --device cuda:97", 1, []string{"device cuda:97: ", "--device cpu"}},
		{"train --device cuda:first", 1, []string{`"first" is no number of a GPU`, "cuda:0"}},
		{"train --device cpu:1", 1, []string{`unknown device "cpu:1"`}},
		{"train --device cpu --debug-sync", 1, []string{"--debug-sync", "--device cuda"}},
		{"train --device cpu --precision tf32", 1, []string{"device cpu computes in float32 or bfloat16, not in tf32",
			"--precision float32", "--device cuda"}},
		{"train --device reference --precision bfloat16", 1, []string{"device reference computes in float32, not in " +
			"bfloat16"}},
		{"train --device cpu --precision float8", 2, []string{"--precision float8", "bfloat16"}},
		{"train --device cuda --precision float64", 1, []string{"unknown precision"}},
		{"train --device cpu --deterministic", 1, []string{"device cpu gives equal bits", "--deterministic"}},
		{"eval --weights x.safetensors --precision", 2, []string{"precision"}},
		{"train --data " + dir + "/none", 1, []string{dir + "/none"}},
		{"train --schedule linaer", 2, []string{"--schedule linaer", "did you mean linear?"}},
		{"train --rna maybe", 2, []string{"--rna maybe", "offline"}},
		{"train --rna-lambda much", 2, []string{"--rna-lambda much: want a number or auto"}},
		{"train --rna-lambda auto", 1, []string{"held-out images", "holdout 0.05"}},
		{"train --rna-tau 1 --rna-lambda 1", 1, []string{"exclude each other"}},
		{"train --rna-accept --holdout 0.1", 1, []string{"rna online"}},
		{"train --momentum 1.5", 1, []string{"momentum 1.5"}},
		{"train --optimizer adom", 2, []string{"--optimizer adom", "did you mean adam?"}},
		{"train --optimizer adamw --momentum 0.9", 1, []string{"adamw does not take momentum"}},
		{"train --eps 1e-8", 1, []string{"sgd does not take eps"}},
		{"train --optimizer lamb --beta2 1", 1, []string{"beta2 1"}},
		{"train --epochs 0", 2, []string{"--epochs 0: must be at least 1"}},
		{"train --schedule step --lr-gamma 0", 2, []string{"--lr-gamma 0", "above 0"}},
		{"train --rna off --averages 2 --rna-window 3", 2, []string{"--rna off", "--averages, --rna-window"}},
		{"extrapolate a b -o " + dir, 2, []string{dir, "a folder"}},
		{"extrapolate a b -o o.safetensors --lambda -1", 2, []string{"--lambda -1", "0 or more"}},
		{"extrapolate a b -o o.safetensors --tau nan", 2, []string{"--tau NaN"}},
		{"extrapolate a b -o o.safetensors --beta inf", 2, []string{"--beta +Inf", "finite"}},
		{"logreg --iterations 0", 2, []string{"--iterations is 0", "1 or more"}},
		{"logreg --csv " + dir + "/same --plot " + dir + "/same", 2, []string{"written twice"}},
		{"eval --weights x.safetensors --predictions " + dir, 2, []string{dir, "a folder"}},
		{"train --batch -1", 2, []string{"batch -1", "or auto"}},
		{"train --batch many", 2, []string{"--batch many: want a number of images, from 1, or auto"}},
		{"train --mean 0.5,0.5", 1, []string{"mean [0.5 0.5]", "1 channel"}},
		{"train --num-classes 3", 1, []string{"num-classes 3", "10 classes"}},
		{"train --init " + text, 1, []string{text, "not a safetensors file"}},
		{"train --resume " + dir, 1, []string{"nothing to resume", "config.json"}},
		{"eval --weights " + dir + "/none.safetensors", 1, []string{"none.safetensors"}},
		{"eval --weights " + text, 1, []string{text, "not a safetensors file"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			status, _, stderr := runRNA(t, strings.Fields(c.args)...)
			if status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			for _, w := range c.want {
				if !strings.Contains(stderr, w) {
					t.Errorf("stderr %q does not say %q", stderr, w)
				}
			}
		})
	}
}

func TestHelpShowsEveryOption(t *testing.T) {
	for _, cmd := range []string{"train", "eval"} {
		out := mustRun(t, cmd, "--help")
		sub, _, err := newRoot().Find([]string{cmd})
		if err != nil {
			t.Fatal(err)
		}
		sub.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(out, "--"+f.Name) || f.Usage == "" {
				t.Errorf("%s: help does not explain --%s", cmd, f.Name)
			}
		})
		if strings.Contains(out, "[]") {
			t.Errorf("%s: help shows an empty default", cmd)
		}
	}
}

func TestModelsAndVersion(t *testing.T) {
	if out := mustRun(t, "models"); !strings.Contains(out, "25,557,032") || !strings.Contains(out, "lenet") {
		t.Errorf("models: %s", out)
	}
	for name, family := range map[string]string{"repvgg": "vgg", "eva02": "vit", "resnt": "resnet"} {
		fails(t, []string{"models", "--family", name}, `unknown family "`+name+`", did you mean "`+family+`"?`)
	}
	if out := mustRun(t, "models", "vgg1?"); strings.Count(out, "\nvgg") != 4 || strings.Contains(out, "vgg11_bn") {
		t.Errorf("models by a pattern: %s", out)
	}
	if out := mustRun(t, "models", "swin_tiny*7_224"); out != "swin_tiny_patch4_window7_224 is swin_t\n" {
		t.Errorf("models by a pattern of aliases: %q", out)
	}
	fails(t, []string{"models", "vgg*x"}, "no model has a name that matches vgg*x")
	fails(t, []string{"models", "--family", "vgg", "resnet*"}, "no model of the family vgg has a name that matches")
	fails(t, []string{"models", "vgg[1"}, `pattern "vgg[1"`)
	if out := mustRun(t, "version"); !strings.HasPrefix(out, "rna ") || strings.Count(out, "\n") != 2 {
		t.Errorf("version: %s", out)
	}
	if out := mustRun(t, "version", "-v"); !strings.HasPrefix(out, "rna ") || !strings.Contains(out,
		"gorgonia.org/gorgonia v") {
		t.Errorf("version: %s", out)
	}
}

func TestTrainAndEval(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	out := mustRun(t, append([]string{"train", "--epochs", "4", "--out", dir}, quick...)...)
	for _, want := range []string{"lenet, 61,706 parameters", "epoch 4/4", "RNA of the last 5 epochs, offline",
		"average of the last 2", "plot.svg", "rna.safetensors"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	for _, f := range []string{"config.json", "metrics.jsonl", "plot.svg", "final.safetensors", "best.safetensors",
		"rna.safetensors", "checkpoint/000005/state.json"} {
		if st, err := os.Stat(filepath.Join(dir, f)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
	if status, _, stderr := runRNA(t, append([]string{"train", "--epochs", "4", "--out", dir},
		quick...)...); status != 1 || !strings.Contains(stderr, "holds a run already") {
		t.Errorf("a second run in the folder: status %d, %q", status, stderr)
	}

	file := filepath.Join(t.TempDir(), "out.csv")
	out = mustRun(t, "eval", "--weights", filepath.Join(dir, "rna.safetensors"), "--data", "glyphs", "--predictions", file)
	if !strings.Contains(out, "lenet on 4000 images: loss") {
		t.Errorf("eval: %s", out)
	}
	checkPredictions(t, file, 4000, 10)
	if link := file + ".link"; os.Symlink(file, link) == nil { // not if links need a privilege
		if err := os.Truncate(file, 0); err != nil {
			t.Fatal(err)
		}
		mustRun(t, "eval", "--weights", filepath.Join(dir, "rna.safetensors"), "--data", "glyphs", "--predictions", link)
		checkPredictions(t, file, 4000, 10)
	}
	mustRun(t, "eval", "--weights", filepath.Join(dir, "rna.safetensors"), "--data", "glyphs", "--predictions", os.DevNull)
	if st, err := os.Stat(os.DevNull); err != nil || st.Mode().IsRegular() {
		t.Errorf("%s is %v, %v", os.DevNull, st.Mode(), err)
	}
	if status, _, stderr := runRNA(t, "eval", "--weights", filepath.Join(dir, "rna.safetensors"), "--model",
		"conv6"); status != 1 || !strings.Contains(stderr, "conv1.weight") {
		t.Errorf("weights of another model: status %d, %q", status, stderr)
	}
}

func checkPredictions(t *testing.T, path string, rows, classes int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != rows+1 || len(got[0]) != classes+4 {
		t.Fatalf("%d rows of %d columns, want %d of %d", len(got), len(got[0]), rows+1, classes+4)
	}
	if h := strings.Join(got[0][:6], ","); h != "path,label,label_name,predicted_name,logit_0,logit_1" {
		t.Errorf("header %q", h)
	}
	if got[1][0] == got[2][0] {
		t.Errorf("two rows of %q", got[1][0])
	}
}

// TestInterrupt stops a run as Ctrl-C does, resumes it and compares it with an uninterrupted one.
func TestInterrupt(t *testing.T) {
	whole, halves := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "halves")
	mustRun(t, append([]string{"train", "--epochs", "3", "--out", whole}, quick...)...)

	ctx, cancel := context.WithCancel(t.Context())
	out := &cancelAfter{line: "epoch 1/3", cancel: cancel}
	var stderr bytes.Buffer
	args := append([]string{"train", "--epochs", "3", "--out", halves}, quick...)
	if status := run(ctx, args, out, &stderr); status != 130 || !strings.Contains(out.String(), "--resume "+halves) {
		t.Fatalf("status %d, stdout %q, stderr %q", status, out.String(), stderr.String())
	}
	stderr.Reset()
	args = []string{"eval", "--weights", filepath.Join(newestCheckpoint(t, halves), "weights.safetensors"), "--data",
		"glyphs"}
	if status := run(ctx, args, io.Discard, &stderr); status != 130 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("eval: status %d, %q", status, stderr.String())
	}
	resumed := mustRun(t, "train", "--resume", halves)
	if !strings.Contains(resumed, "Resumed after epoch 1") || !strings.Contains(resumed, "epoch 3/3") ||
		strings.Contains(resumed, "epoch 1/3") {
		t.Errorf("resumed run: %s", resumed)
	}
	for _, f := range []string{"final.safetensors", "rna.safetensors"} {
		a, err := os.ReadFile(filepath.Join(whole, f))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(halves, f)); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs from the run that was not stopped (%v)", f, err)
		}
	}
}

// cancelAfter calls cancel when a line with the given text is written.
type cancelAfter struct {
	bytes.Buffer
	line   string
	cancel func()
}

func (c *cancelAfter) Write(b []byte) (int, error) {
	if strings.Contains(string(b), c.line) {
		c.cancel()
	}
	return c.Buffer.Write(b)
}

func TestQuietAndMetrics(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	out := mustRun(t, append([]string{"train", "--epochs", "2", "--quiet", "--rna", "off", "--out", dir}, quick[:6]...)...)
	if strings.Contains(out, "epoch 1/2") {
		t.Errorf("progress in spite of --quiet: %s", out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for line := range strings.Lines(string(b)) {
		var rec struct {
			Kind        string
			Epoch, Step int
			Loss        float64
		}
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		kinds[rec.Kind]++
	}
	if kinds["step"] != 6 || kinds["epoch"] != 2 {
		t.Errorf("records %v, want 6 steps and 2 epochs", kinds)
	}
}

func newestCheckpoint(t *testing.T, run string) string {
	t.Helper()
	dir, err := train.Checkpoint(run)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestHelpFits: the help of each command is no wider than a terminal.
func TestHelpFits(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		for line := range strings.Lines(mustRun(t, args...)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > terminal.Default {
				t.Errorf("%v: %d columns: %s", args, n, line)
			}
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(newRoot())
}

// TestOtherTrainers checks the options that replace those of other trainers.
func TestOtherTrainers(t *testing.T) {
	commands := newRoot().Commands()
	for name := range cli.OtherTrainers {
		if !slices.ContainsFunc(commands, func(c *cobra.Command) bool { return cli.HereItIs(c, name) != "" }) {
			t.Errorf("no command has %s", cli.OtherTrainers[name])
		}
	}
}
