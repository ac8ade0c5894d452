package train

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFineTune starts from weights of other classes with frozen layers, which stay bit for bit, is interrupted and goes on.
func TestFineTune(t *testing.T) {
	dev := cpuDevice(t, 2)
	dir := t.TempDir()
	first := trained(t, tinyColour(filepath.Join(dir, "first"), pictures(t, 20, 6, 16)), dev)
	c := tinyColour(filepath.Join(dir, "fine"), pictures(t, 20, 6, 16))
	c.Init = filepath.Join(first.Config.Out, "final.safetensors")
	c.NumClasses = first.Config.NumClasses + 3
	c.Freeze, c.HeadRate, c.LayerDecay = []string{"conv[12].*", "bn[12].*"}, .05, .7
	run := trained(t, c, dev)
	if note := strings.Join(run.Notes, "\n"); !strings.Contains(note, "the last layer, which starts fresh") {
		t.Errorf("notes %s", note)
	}
	before, after := tensors(t, first.Net), tensors(t, run.Net)
	for name, want := range before {
		layer, _, _ := strings.Cut(name, ".")
		frozen := slices.Contains([]string{"conv1", "bn1", "conv2", "bn2"}, layer) && !strings.HasSuffix(name, "tracked")
		if frozen != slices.Equal(after[name], want) {
			t.Errorf("%s: frozen %v", name, frozen)
		}
	}
	for _, bad := range []func(*Config){
		func(c *Config) { c.LayerDecay = 1.5 }, func(c *Config) { c.HeadRate = -1 },
		func(c *Config) { c.Freeze = []string{"layer9.*"} }, func(c *Config) { c.Init = "nowhere.pt" },
	} {
		c := c
		c.Out = filepath.Join(dir, "bad")
		bad(&c)
		if r, err := New(c, dev); err == nil {
			r.Close()
			t.Errorf("no error for %v, %v, %v, %v", c.LayerDecay, c.HeadRate, c.Freeze, c.Init)
		}
	}
}
