package launch

import (
	"errors"
	"fmt"
	"testing"

	"onlinerna/nn/device"
	_ "onlinerna/nn/device/cpu" // an error advises to use it
)

// Runs that train at once share all devices of a kind, or those that the name lists; a unit is for all of them.
func TestShare(t *testing.T) {
	device.Register("shared", device.Driver{Precisions: []string{"float32"}, Units: true,
		Several: func(units string) ([]string, error) {
			switch units {
			case "all":
				return []string{"0", "1", "2"}, nil
			case "2,0":
				return []string{"2", "0"}, nil
			}
			return nil, errors.New("no such unit")
		},
		Open: func(string, device.Options) (device.Device, error) { return nil, errors.New("not to be opened") }})
	for _, c := range []struct {
		name string
		n    int
		want string
	}{
		{"shared", 4, "shared:0 shared:1 shared:2 shared:0 "},
		{"shared", 1, "shared "},
		{"shared:all", 1, "shared:0 "},
		{"shared:2,0", 3, "shared:2 shared:0 shared:2 "},
		{"shared:1", 2, "shared:1 shared:1 "},
		{"cpu", 2, "cpu cpu "},
	} {
		got := ""
		for i := range c.n {
			own, err := Share(c.name, i, c.n)
			if err != nil {
				t.Fatal(err)
			}
			got += fmt.Sprint(own, " ")
		}
		if got != c.want {
			t.Errorf("%d runs on %s: %s, want %s", c.n, c.name, got, c.want)
		}
	}
	if _, err := Share("shared:9,8", 0, 2); err == nil {
		t.Error("unknown units are shared")
	}
}
