package statedict

import (
	"slices"
	"strings"
	"testing"
)

// The files of a repository that Open reads are those that are chosen from it.
func TestHubFiles(t *testing.T) {
	for names, want := range map[string]string{
		"README.md config.json model.safetensors pytorch_model.bin": "config.json model.safetensors",
		"pytorch_model.bin preprocessor_config.json flax.msgpack":   "preprocessor_config.json pytorch_model.bin",
		"model.safetensors.index.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors " +
			"model-00001-of-00002.bin other-00001-of-00002.safetensors config.json": "config.json " +
			"model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json",
		"model.safetensors pytorch_model.bin.index.json pytorch_model-00001-of-00001.bin": "model.safetensors",
		"open_clip_model.safetensors open_clip_pytorch_model.bin":                         "open_clip_model.safetensors",
		"config.json README.md": "",
	} {
		if got := HubFiles(strings.Fields(names)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("of %s: %q", names, got)
		}
	}
}
