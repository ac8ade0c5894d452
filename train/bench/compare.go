package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
)

// ReadResults reads measurements from JSON files written by rna bench train or scripts/bench_pytorch.py.
func ReadResults(files ...string) ([]*Result, error) {
	var list []*Result
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r := &Result{}
		err = json.Unmarshal(text, r)
		if r.Precision == "" { // a device with a single precision
			r.Precision = "float32"
		}
		if err == nil && (r.Model == "" || r.Batch < 1 || r.Images.Median <= 0) {
			err = errors.New("it lacks a model, a batch or images_per_s: is it of 'rna bench train --json-file' or of " +
				"bench_pytorch.py?")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, r)
	}
	return list, nil
}

// program names the measured program.
func (r *Result) program() string {
	name := "rna"
	if strings.HasPrefix(r.Software, "PyTorch") {
		name = r.Software
		if r.Layout != "" {
			name += ", " + r.Layout
		}
		if r.Compile != "" && r.Compile != "none" {
			name += ", compiled: " + r.Compile
		}
	}
	if name == "rna" && !r.Winograd && r.Precision == "float32" && r.Level != "" && r.Level != "go" {
		name += " --winograd=false"
	}
	if r.Float32 == "bf16x3" {
		name += " --float32 bf16x3"
	}
	if r.LowMemory {
		name += " --low-memory"
	}
	return name
}

// WriteComparison writes a line for each input of each measurement. Ratios are to the first measurement of the same
// model, mode, batch, size and precision.
func WriteComparison(w io.Writer, list []*Result) error {
	rows := [][]string{{"program", "device", "precision", "work", "input", "images/s", "quartiles", "", "GFLOP/s",
		"of peak", "memory", "ratio"}}
	first := map[string]*Result{}
	for _, r := range list {
		work := fmt.Sprintf("%s, %s, batch %d of %d×%d", r.Model, r.work(), r.Batch, r.ImageSize, r.ImageSize)
		on, memory := r.Device, r.Memory
		if r.Card != "" {
			on = r.Card
		}
		if r.DeviceMemory > 0 {
			memory = r.DeviceMemory
		}
		bytes, peak, ratio := "", "", ""
		if memory > 0 {
			bytes = gigabytes(memory)
		}
		if r.Peak > 0 {
			peak = text.Percent(r.GFLOPS.Median / r.Peak)
		}
		key := work + r.Precision + on
		if f := first[key]; f == nil {
			first[key] = r
		} else {
			ratio = fmt.Sprintf("%.2f", r.Images.Median/f.Images.Median)
		}
		inputs := r.Inputs
		if len(inputs) == 0 {
			inputs = []InputSpeed{{Input: Synthetic, Images: r.Images}}
		}
		for i, in := range inputs {
			row := []string{r.program(), on, r.Precision, work, in.Input, text.Number(in.Images.Median),
				text.Number(in.Images.Q1), text.Number(in.Images.Q3), text.Number(r.GFLOPS.Median), peak, bytes, ratio}
			if i > 0 {
				row = []string{"", "", "", "", in.Input, text.Number(in.Images.Median), text.Number(in.Images.Q1),
					text.Number(in.Images.Q3), "", "", "", ""}
			}
			rows = append(rows, row)
		}
	}
	b := terminal.NewPage(w)
	b.Table(rows)
	return b.Flush(w)
}
