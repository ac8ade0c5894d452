//go:build gpu && cgo

package dnn

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"onlinerna/cuda/driver"
)

// Properties of cards in cuDNN's form, from their data sheets.
//
//go:embed cards/*.json
var cards embed.FS

// Card returns the properties of a card, such as h100, for [Describe].
func Card(key string) (properties string, err error) {
	b, err := cards.ReadFile("cards/" + key + ".json")
	if err == nil {
		return string(b), nil
	}
	files, err := cards.ReadDir("cards")
	var keys []string
	for _, f := range files {
		keys = append(keys, strings.TrimSuffix(f.Name(), ".json"))
	}
	if err == nil {
		err = fmt.Errorf("unknown card %q: use one of %s", key, strings.Join(keys, ", "))
	}
	return "", err
}

// infoOf reads properties.
func infoOf(properties string) (driver.Info, error) {
	var p struct {
		DeviceName          string
		DeviceVer           int
		MultiProcessorCount int
		TotalGlobalMem      int64
	}
	if err := json.Unmarshal([]byte(properties), &p); err != nil {
		return driver.Info{}, fmt.Errorf("cuda: properties of a card: %w", err)
	}
	return driver.Info{Name: p.DeviceName, Major: p.DeviceVer / 100, Minor: p.DeviceVer % 100 / 10,
		Multiprocessors: p.MultiProcessorCount, Memory: p.TotalGlobalMem}, nil
}
