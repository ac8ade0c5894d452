package machinetest

import (
	"embed"
	"encoding/json"
	"fmt"

	"onlinerna/nn/internal/golden"
)

//go:embed testdata/net_*.json
var testdata embed.FS

// reference holds PyTorch's results for a network and the deviations of its float32 results in the layouts NCHW and
// NHWC.
type reference struct {
	golden.Net
	nhwc struct {
		Train struct {
			Params []struct {
				Deviation float64 `json:"f32_reldev_channels_last"`
			}
		}
		SGD []struct {
			Losses []float64 `json:"losses_f32_channels_last"`
		}
	}
}

func load(name string) (*reference, error) {
	b, err := testdata.ReadFile("testdata/net_" + name + ".json")
	if err != nil {
		return nil, err
	}
	r := new(reference)
	if err = json.Unmarshal(b, &r.Net); err == nil {
		err = json.Unmarshal(b, &r.nhwc)
	}
	if err == nil && (len(r.nhwc.Train.Params) != len(r.Train.Params) || len(r.nhwc.SGD) != len(r.SGD)) {
		err = fmt.Errorf("%d and %d parameters", len(r.nhwc.Train.Params), len(r.Train.Params))
	}
	if err != nil {
		return nil, fmt.Errorf("golden data of %s: %w", name, err)
	}
	return r, nil
}
