//go:build gpu && cgo

package dnn

import (
	"encoding/json"
	"fmt"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/internal/cache"
)

// choice is a file of the cache: the fastest plan for a graph.
type choice struct {
	Key string `json:"key"`
	Engine
	Plan string `json:"plan"`
}

// name lists everything on which the fastest plan depends.
func (p *Plans) name() string {
	i := p.d.info
	return fmt.Sprintf("%v, %v, at most %d bytes of scratch, %s %s with %d multiprocessors, cuDNN %s", p.g,
		p.o.Precision, p.o.Workspace,
		i.Name, i.Arch(), i.Multiprocessors, Version())
}

func planFile(key string) string { return "plan-" + cache.Digest(key) + ".json" }

// keptPlan reads a plan. A damaged file, or one for another key, counts as missing.
func keptPlan(o driver.Options, key string) (k choice, ok bool) {
	b, ok := cache.Read(cache.Folder(o.KernelCache), planFile(key))
	if !ok || json.Unmarshal(b, &k) != nil || k.Key != key || k.Plan == "" {
		return choice{}, false
	}
	return k, true
}

// keepPlan writes a plan if cuDNN can serialise it. Errors are ignored: the next run measures again.
func keepPlan(o driver.Options, k choice) {
	if b, err := json.Marshal(k); err == nil && k.Plan != "" {
		cache.Write(cache.Folder(o.KernelCache), planFile(k.Key), append(b, '\n'))
	}
}

// note is a file of the cache with another measured result.
type note struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (d *Handle) noteKey(key string) string {
	i := d.info
	return fmt.Sprintf("%s, %s %s with %d multiprocessors, cuDNN %s", key, i.Name, i.Arch(), i.Multiprocessors,
		Version())
}

// Kept returns the value stored by Keep for the same card and cuDNN.
func (d *Handle) Kept(key string) (value string, ok bool) {
	key = d.noteKey(key)
	b, ok := cache.Read(cache.Folder(d.c.Options().KernelCache), "note-"+cache.Digest(key)+".json")
	var n note
	if !ok || json.Unmarshal(b, &n) != nil || n.Key != key {
		return "", false
	}
	return n.Value, true
}

// Keep stores a result of measurements on this card for later runs.
func (d *Handle) Keep(key, value string) {
	key = d.noteKey(key)
	if b, err := json.Marshal(note{key, value}); err == nil {
		cache.Write(cache.Folder(d.c.Options().KernelCache), "note-"+cache.Digest(key)+".json", append(b, '\n'))
	}
}
