package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/evaluate"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// TestBestAgrees: the lines of epochs, the table, metrics.jsonl and best.safetensors name the same best weights, also
// for a resumed run.
func TestBestAgrees(t *testing.T) {
	marked := regexp.MustCompile(`([A-Za-z0-9 -]+) [0-9.]+ % \(best so far`)
	for _, by := range []string{hook.ByError, hook.ByLoss} {
		dir := filepath.Join(t.TempDir(), "run")
		options := []string{"--limit-batches", "20", "--batch", "16", "--averages", "2,3", "--ema", "12", "--rna-window",
			"2", "--best-by", by, "--schedule", "constant"}
		check := func(out string) {
			t.Helper()
			flat := strings.Join(strings.Fields(out), " ")
			history, err := train.ReadHistory(dir)
			if err != nil {
				t.Fatal(err)
			}
			best := history[len(history)-1].Best
			for _, r := range history {
				list, _ := r.Ranking(by)
				if first := list[0]; r.Epoch == best.Epoch && first != best.ScoreRecord {
					t.Errorf("epoch %d: %+v is the best of the run, and %+v that of its epoch", r.Epoch, best, first)
				}
			}
			for _, line := range strings.Split(flat, "epoch ") { // start of each line of an epoch
				var epoch int
				m := marked.FindStringSubmatch(line)
				if m == nil {
					continue
				}
				fmt.Sscanf(line, "%d", &epoch)
				if then := history[epoch-1].Best; then.Epoch != epoch || !strings.HasSuffix(" "+m[1], " "+then.Name("SGD")) {
					t.Errorf("epoch %d: %q is said to be the best, %+v was", epoch, m[1], then)
				}
			}
			names := map[network.Kind]string{network.SGD: "SGD", network.RNA: "RNA of the last 2 epochs, offline",
				network.EMA:     "power EMA, γ = 12",
				network.Average: fmt.Sprintf("average of the last %d", best.Snapshots)}
			value := fmt.Sprintf("%.2f %%", best.Score.Error())
			if by == hook.ByLoss {
				value = fmt.Sprintf("%.4f", best.Score.Loss)
			}
			if want := fmt.Sprintf("Best by validation %s: %s, epoch %d, %s", by, names[best.Kind], best.Epoch,
				value); !strings.Contains(flat, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
			file := filepath.Join(dir, "best.safetensors")
			meta, err := network.ReadMeta(file)
			if err != nil || meta.Kind != best.Kind || meta.Snapshots != best.Snapshots || meta.Epoch != best.Epoch {
				t.Errorf("the file is of %s %d, epoch %d, %v; want %+v", meta.Kind, meta.Snapshots, meta.Epoch, err, best)
			}
			var got evaluate.Report
			status, report, stderr := runRNA(t, "eval", "--weights", file, "--json")
			if err := json.Unmarshal([]byte(report), &got); err != nil {
				t.Fatal(status, stderr, err)
			}
			if got.Score.Top1 != best.Score.Top1 || abs(got.Score.Loss-best.Score.Loss) > 1e-5 {
				t.Errorf("the file scores %+v, want %+v", got.Score, best.Score)
			}
		}
		check(mustRun(t, append([]string{"train", "--epochs", "4", "-o", dir}, options...)...))
		check(mustRun(t, "train", "--resume", dir, "--epochs", "6"))
	}
}

func abs(x float64) float64 { return max(x, -x) }
