//go:build gpu && cgo

package dnn

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"onlinerna/cuda/internal/cache"
)

// ahead is a file with plans of a graph that were made before training: the candidates, best first.
type ahead struct {
	Key   string
	Plans []madePlan
}

// madePlan is an engine with its plan as text.
type madePlan struct {
	Engine
	Numerical, Behaviour uint64
	Workspace            int64
	Plan                 string
}

// made makes the candidates' plans as text. Those that cuDNN cannot make or write are left out.
func (p *Plans) made() (all []madePlan) {
	compiled := 0
	for _, e := range p.all[:min(len(p.all), mostMeasured)] {
		if e.Compiled() && compiled == mostCompiled {
			continue
		}
		x, err := p.plan(e)
		if err != nil {
			continue
		}
		if text := x.text(); text != "" && p.within(x.workspace) {
			all = append(all, madePlan{x.engine, e.numerical, e.behaviour, x.workspace, text})
			if e.Compiled() {
				compiled++
			}
		}
		_ = x.close() // a description: nothing of a card is lost
	}
	return all
}

// candidates are the engines of plans that the options allow.
func (p *Plans) candidates(made []madePlan) (all []Engine) {
	for _, m := range made {
		e := m.Engine
		e.numerical, e.behaviour, e.workspace, e.text = m.Numerical, m.Behaviour, m.Workspace, m.Plan
		if e.suits(p.o) && p.within(e.workspace) {
			all = append(all, e)
		}
	}
	return all
}

// aheadName is the name of the file with plans that suit key.
func aheadName(key string) string { return "ahead-" + cache.Digest(key) + ".json.gz" }

// ahead reads the plans made for the graph, card and cuDNN. A damaged file, or one for another key, counts as missing.
func (p *Plans) ahead(folder string) []Engine {
	b, ok := cache.Read(folder, aheadName(p.key))
	if !ok {
		return nil
	}
	var a ahead
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(r)
	}
	if err != nil || json.Unmarshal(b, &a) != nil || a.Key != p.key {
		return nil
	}
	return p.candidates(a.Plans)
}

// offer gives the graph candidates made by [MakeAhead], unless a plan is made already.
func (p *Plans) offer(made []madePlan) {
	if all := p.candidates(made); p.chosen == nil && p.state == listed && len(all) > 0 {
		p.all, p.state, p.most = all, offered, 0
		for _, e := range all {
			p.most = max(p.most, e.workspace)
		}
	}
}

// MakeAhead makes the plans of graphs for the card with these properties, which may be absent, in several threads.
// after is called after each graph, by one thread at a time. Graphs for which cuDNN has no plan are left out.
func MakeAhead(properties string, graphs []*Graph, o Options, threads int, after func(Made) error) error {
	o.Later, o.Tried = true, nil
	next := make(chan *Graph)
	var mutex sync.Mutex
	var wait sync.WaitGroup
	var failed error
	note := func(err error) {
		mutex.Lock()
		defer mutex.Unlock()
		failed = errors.Join(failed, err)
	}
	for range min(max(threads, 1), len(graphs)) {
		wait.Go(func() {
			d, err := Describe(properties) // descriptors belong to one thread
			note(err)
			for g := range next {
				if err != nil {
					continue
				}
				m := Made{Graph: g}
				if p, failed := d.NewPlans(g, o); failed == nil {
					_ = onThread(func() error { m.plans, m.key = p.made(), p.name(); return nil })
					note(p.Close())
				} else if !errors.Is(failed, ErrNoPlan) {
					note(failed)
				}
				mutex.Lock()
				if failed == nil {
					failed = after(m)
				}
				mutex.Unlock()
			}
			if err == nil {
				note(d.Close())
			}
		})
	}
	for _, g := range graphs {
		next <- g
	}
	close(next)
	wait.Wait()
	return failed
}

// Made are the plans of a graph made by [MakeAhead].
type Made struct {
	Graph *Graph
	key   string
	plans []madePlan
}

// Plans is the number of plans.
func (m Made) Plans() int { return len(m.plans) }

// Offer gives the plans to p, which runs the same graph.
func (m Made) Offer(p *Plans) { p.offer(m.plans) }

// Write writes the plans to a file in a folder, in which [Options].Ahead finds them, and returns its size.
func (m Made) Write(folder string) (size int, err error) {
	b, err := json.Marshal(ahead{m.key, m.plans})
	if err != nil {
		return 0, err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err = w.Write(b); err == nil {
		err = w.Close()
	}
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, aheadName(m.key)), packed.Bytes(), 0o644)
	}
	if err != nil {
		return 0, fmt.Errorf("plans of %s: %w", m.Graph.Name, err)
	}
	return packed.Len(), nil
}
