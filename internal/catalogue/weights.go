package catalogue

import (
	_ "embed"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// torchvision lists torchvision's weights: net, version, address and size in bytes, within a kilobyte. A file's name
// ends with the first digits of its SHA-256. gen.py prints the list; it needs Python's torchvision.
//
//go:embed torchvision.txt
var torchvision string

func init() {
	for line := range strings.Lines(torchvision) {
		if err := addWeights(strings.Fields(line)); err != nil {
			panic(fmt.Sprintf("torchvision.txt: %q: %v", line, err))
		}
	}
}

func addWeights(fields []string) error {
	if len(fields) != 4 {
		return fmt.Errorf("%d fields", len(fields))
	}
	net, version, address := fields[0], fields[1], fields[2]
	bytes, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil {
		return err
	}
	name := path.Base(address)
	_, digits, ok := strings.Cut(strings.TrimSuffix(name, ".pth"), "-")
	if i := strings.LastIndexByte(digits, '-'); i >= 0 {
		digits = digits[i+1:]
	}
	if !ok || len(digits) < 8 {
		return fmt.Errorf("no checksum in %s", name)
	}
	it := Item{Name: net + "-" + version, Kind: Weights, Net: net,
		About: "torchvision's weights for ImageNet, " + strings.ToUpper(version),
		Files: []File{{Name: name, Addresses: []string{address}, Size: bytes, Rough: true, SHA256: digits}}}
	Register(it)
	it.Name = net // the last version is the default one
	Register(it)
	return nil
}
