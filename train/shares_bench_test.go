package train

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"onlinerna/nn/device/cpu"
	"onlinerna/rna"
	"onlinerna/train/average"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

// BenchmarkShares measures a checkpoint of ResNet-152 with momentum, a window of 10 residuals and best weights, of one
// process and of 4 ranks in this process: the seconds of a checkpoint, and the bytes that the rank with most writes, in
// equal shares of all:
//
//	go test ./train -run '^$' -bench Shares -benchtime 3x
//
// ONLINERNA_MODEL names another net.
func BenchmarkShares(b *testing.B) {
	model := "resnet152"
	if name := os.Getenv("ONLINERNA_MODEL"); name != "" {
		model = name
	}
	data := pictures(b, 16, 2, 64)
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			out := filepath.Join(b.TempDir(), "run")
			rankstest.Run(b, n, 10*time.Minute, func(g *ranks.Group) error {
				dev, err := cpu.New(cpu.Options{Threads: max(1, 2/n)})
				if err != nil {
					return err
				}
				defer dev.Close()
				r, err := New(Spec{Data: data, Model: model, Batch: 2, Epochs: 20, Seed: 1, Out: out, CheckpointKeep: 1,
					RNA: average.Options{Mode: average.Offline, Window: 10}}, Deps{Device: dev, Ranks: g})
				if err != nil {
					return err
				}
				defer r.Close()
				w := r.Hook("rna").(*average.RNA).Window()
				x := make(rna.Slice32, r.Net.Params.Len())
				rng := rand.New(rand.NewPCG(1, 2))
				for range 11 {
					for i := range x {
						x[i] = rng.Float32()
					}
					if err := w.Push(x); err != nil {
						return err
					}
				}
				if err := r.begin(); err != nil { // with the state of a run that goes on
					return err
				}
				if err := g.Barrier(); err != nil {
					return err
				}
				start := time.Now()
				for range b.N {
					if err := r.Save(); err != nil {
						return err
					}
				}
				if g.First() {
					b.ReportMetric(time.Since(start).Seconds()/float64(b.N), "s/checkpoint")
				}
				return g.Barrier()
			})
			dir, err := Checkpoint(out)
			if err != nil {
				b.Fatal(err)
			}
			all, err := os.ReadDir(dir)
			if err != nil {
				b.Fatal(err)
			}
			total, own := 0., make([]float64, n)
			for _, e := range all {
				info, err := e.Info()
				if err != nil {
					b.Fatal(err)
				}
				total += float64(info.Size())
				own[max(0, network.ShareOf(e.Name()).Index)] += float64(info.Size())
			}
			most := 0.
			for _, x := range own {
				most = max(most, x)
			}
			b.ReportMetric(total/1e6, "MB")
			b.ReportMetric(most/1e6, "MB/rank")
			b.ReportMetric(most/total*float64(n), "of-an-equal-share")
			b.ReportMetric(0, "ns/op")
		})
	}
}
