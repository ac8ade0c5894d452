//go:build gpu && cgo

package net

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/internal/cache"
)

// aheadVariable names the environment variable with a folder of plans made ahead.
const aheadVariable = "RNA_CUDA_AHEAD"

// aheadFolders lists the folders with plans made ahead: that of the environment, then the cache's.
func aheadFolders(o Options) (all []string) {
	for _, f := range []string{os.Getenv(aheadVariable), cache.Folder(o.Context.KernelCache)} {
		if f != "" {
			all = append(all, f)
		}
	}
	return all
}

// told is the longest silence while plans are made.
var told = 4 * time.Second

// compile has cuDNN make the plans that it compiles, in several threads, before the first of them is settled. A cuDNN
// before 9.8 cannot: Settle makes them one by one.
func (d *Device) compile() error {
	waiting := d.compiles
	d.compiles = nil
	if len(waiting) == 0 || d.dnn.Described() {
		return nil
	}
	properties, err := d.dnn.Properties()
	if err != nil {
		return nil
	}
	plans := map[*dnn.Graph]*dnn.Plans{}
	var graphs []*dnn.Graph
	for _, p := range waiting {
		plans[p.Graph()] = p
		graphs = append(graphs, p.Graph())
	}
	threads := min(runtime.NumCPU(), len(graphs))
	say := func(format string, a ...any) {
		if d.opts.Warn != nil {
			d.opts.Warn(fmt.Sprintf(format, a...))
		}
	}
	why := "rna plans makes them ahead"
	if f := os.Getenv(aheadVariable); f != "" {
		why = "those in " + f + " are for another card, cuDNN, net or batch"
	}
	say("cuDNN %s compiles plans of %d graphs for %s in %d threads, once: %s", dnn.Version(), len(graphs), d.info.Name,
		threads, why)
	over, ended := make(chan bool), make(chan bool)
	done := make(chan bool, len(graphs))
	go func() {
		defer close(ended)
		start, n, tick := time.Now(), 0, time.NewTicker(told)
		defer tick.Stop()
		for {
			select {
			case <-done:
				n++
			case <-tick.C:
				say("%d of %d graphs have plans after %.0f s", n, len(graphs), time.Since(start).Seconds())
			case <-over:
				return
			}
		}
	}()
	var all []dnn.Made
	err = dnn.MakeAhead(properties, graphs, d.planning(), threads, func(m dnn.Made) error {
		all = append(all, m)
		done <- true
		return nil
	})
	close(over)
	<-ended
	for _, m := range all {
		m.Offer(plans[m.Graph])
	}
	if err != nil { // Settle makes the others
		say("plans are made one by one, because %v", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}
