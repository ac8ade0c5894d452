package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/train/network"
)

// TestEvalReport computes a report of four images by hand.
func TestEvalReport(t *testing.T) {
	r := newEvalReport([]string{"a", "b"}, 3)
	l3 := float32(math.Log(3))
	b := &data.Batch{N: 4, Labels: []int32{0, 0, 1, 1}}
	inf := float32(math.Inf(-1))
	if err := r.add(b, []float32{l3, 0, inf, 0, l3, inf, 0, l3, inf, 0, l3, inf}); err != nil { // confidence 3/4 each
		t.Fatal(err)
	}
	r.finish("x", network.Score{Top1: 75, Images: 4})
	if r.Calibration > 1e-7 { // three of four are right
		t.Errorf("calibration error %g", r.Calibration)
	}
	if len(r.Classes) != 2 || r.Classes[0] != (classScore{"a", 2, 50}) || r.Classes[1] != (classScore{"b", 2, 100}) {
		t.Errorf("%+v", r.Classes)
	}
	var csv strings.Builder
	if err := r.writeConfusion(&csv); err != nil || csv.String() != "label,a,b,2\na,1,1,0\nb,0,2,0\n" {
		t.Errorf("%q, %v", csv.String(), err)
	}
	// 3 of 4, by Wilson's formula.
	if got := r.Interval; math.Abs(got[0]-30.0642) > 1e-3 || math.Abs(got[1]-95.4413) > 1e-3 {
		t.Errorf("interval %v", got)
	}
	dir := t.TempDir()
	mustRun(t, append([]string{"train", "--epochs", "1", "-o", filepath.Join(dir, "run"), "-q", "--rna", "off"}, quick[:6]...)...)
	confusion := filepath.Join(dir, "c.csv")
	_, out, _ := runRNA(t, "eval", "--weights", filepath.Join(dir, "run", "final.safetensors"), "--json", "--confusion", confusion)
	var got evalReport
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Score.Images == 0 || len(got.Classes) != 10 {
		t.Errorf("%v: %.300s", err, out)
	}
	if b, err := os.ReadFile(confusion); err != nil || strings.Count(string(b), "\n") != 11 {
		t.Errorf("%q, %v", b, err)
	}
}
