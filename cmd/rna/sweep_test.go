package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/report"
	"onlinerna/train/runs"
	"onlinerna/train/sweep"
)

// A sweep of several seeds in which none stopped tells why.
func TestHalved(t *testing.T) {
	r := runs.Run{Config: train.Spec{Epochs: 9}, History: []hook.EpochRecord{{Epoch: 9}}}
	got := halved(sweep.Result{Candidates: 1}, []runs.Run{r, r}, 2)
	if want := "0 of 1 candidates stopped early, 18 of 18 epochs were trained; no t test over 2 seeds told"; !strings.HasPrefix(got,
		want) {
		t.Error(got)
	}
}

func TestSweep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sweep")
	sweep := append([]string{"sweep", "--set", "lr=0.02,0.1,0.05", "--epochs", "3", "--halving", "3", "--jobs", "2", "-o",
		dir}, quick...)
	out := mustRun(t, sweep...)
	for _, want := range []string{"3 candidates of 1 seed in " + dir + "\n", "  lr 0.1: epoch 1 of 3, best error ",
		": epoch 3 of 3", "2 of 3 candidates stopped early, 5 of 9 epochs were trained; rna train --resume ", "\nA  00", "stopped\n", "same images"} {
		if !strings.Contains(out, want) || strings.Contains(out, "lr-final") { // which follows from lr
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, name := range []string{"sweep.json", "001/plot.svg", "002/metrics.jsonl", "003/best.safetensors"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	fails(t, sweep, "go on with --resume "+dir)
	out = mustRun(t, "sweep", "--resume", dir, "-q", "--json", "--threads", "1")
	var c report.Comparison
	if err := json.Unmarshal([]byte(out), &c); err != nil || len(c.Groups) != 3 || c.Groups[0].Epoch < 1 {
		t.Errorf("%v\n%s", err, out)
	}
	if out := mustRun(t, "sweep", "--resume", dir); !strings.Contains(out, " had arrived before\n") {
		t.Error(out)
	}
	for args, want := range map[string]string{
		"":                                   "nothing to sweep",
		"--set lrr=1,2":                      "did you mean lr?",
		"--set lr=0.1,1 --lr 2":              "--lr is given and swept",
		"--set lr=log:0.1..1":                "--trials",
		"--set lr=0.1,1 --search tpe":        "how many by --trials",
		"--set lr=0.1,1 --search best":       "unknown search",
		"--set lr=0.1,1 --profile 3":         "does not take --profile",
		"--set lr=0.1,1 --shard 1/2":         "by -o",
		"--set lr=0.1,1 --shard 0/2 -o x":    "want i/n",
		"--set lr=0.1,1 --jobs 0":            "--jobs 0",
		"--set lr=0.1,1 --sort speed":        "unknown option",
		"--resume " + dir + " --set lr=1":    "does not take --set",
		"--resume " + dir + " --shard 1/2":   "1 part",
		"--resume " + t.TempDir():            "holds no sweep",
		"--resume " + dir + " --epochs 5":    "does not take --epochs",
		"--set model=lenet,lenett -o " + dir: "unknown model",
	} {
		fails(t, append([]string{"sweep"}, strings.Fields(args)...), want)
	}
}
