//go:build gpu && cgo

package dnn

import (
	"encoding/json"
	"fmt"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/internal/cache"
)

// kept is a file of the cache: which plan was the fastest for a graph, and the plan.
type kept struct {
	Key string `json:"key"`
	Engine
	Plan string `json:"plan"`
}

// name is all that the fastest plan may depend on.
func (p *Plans) name() string {
	i := p.d.c.Info()
	return fmt.Sprintf("%v, %v, at most %d bytes of scratch, %s %s with %d multiprocessors, cuDNN %s", p.g, p.o.Precision, p.o.Workspace,
		i.Name, i.Arch(), i.Multiprocessors, Version())
}

func planFile(key string) string { return "plan-" + cache.Digest(key) + ".json" }

// keptPlan reads a plan. A file that is damaged, or of something else, is as good as none.
func keptPlan(o driver.Options, key string) (k kept, ok bool) {
	b, ok := cache.Read(cache.Folder(o.KernelCache), planFile(key))
	if !ok || json.Unmarshal(b, &k) != nil || k.Key != key || k.Plan == "" {
		return kept{}, false
	}
	return k, true
}

// keepPlan writes a plan, unless cuDNN does not tell it. Where that fails the next run measures again.
func keepPlan(o driver.Options, k kept) {
	if b, err := json.Marshal(k); err == nil && k.Plan != "" {
		cache.Write(cache.Folder(o.KernelCache), planFile(k.Key), append(b, '\n'))
	}
}

// note is a file of the cache: something else that was found out by timing.
type note struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (d *Handle) noteKey(key string) string {
	i := d.c.Info()
	return fmt.Sprintf("%s, %s %s with %d multiprocessors, cuDNN %s", key, i.Name, i.Arch(), i.Multiprocessors, Version())
}

// Kept is what was kept by Keep, for the same card and cuDNN.
func (d *Handle) Kept(key string) (value string, ok bool) {
	key = d.noteKey(key)
	b, ok := cache.Read(cache.Folder(d.c.Options().KernelCache), "note-"+cache.Digest(key)+".json")
	var n note
	if !ok || json.Unmarshal(b, &n) != nil || n.Key != key {
		return "", false
	}
	return n.Value, true
}

// Keep keeps what was found out about the card for later runs.
func (d *Handle) Keep(key, value string) {
	key = d.noteKey(key)
	if b, err := json.Marshal(note{key, value}); err == nil {
		cache.Write(cache.Folder(d.c.Options().KernelCache), "note-"+cache.Digest(key)+".json", append(b, '\n'))
	}
}
