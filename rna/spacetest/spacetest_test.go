package spacetest

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"onlinerna/rna"
)

func TestSpaces(t *testing.T) {
	dir := t.TempDir()
	for name, open := range map[string]func(dim int) (rna.Space, error){
		"float32":       func(dim int) (rna.Space, error) { return rna.NewHost32(dim, 2) },
		"float64":       func(dim int) (rna.Space, error) { return rna.NewHost64(dim, 3) },
		"float32 files": func(dim int) (rna.Space, error) { return rna.NewFile32(dir, dim, 2) },
		"float64 files": func(dim int) (rna.Space, error) { return rna.NewFile64(dir, dim, 1) },
		"foreign":       func(dim int) (rna.Space, error) { s, err := rna.NewHost64(dim, 1); return foreign{s}, err },
	} {
		t.Run(name, func(t *testing.T) { Run(t, open) })
	}
}

// foreign is a space that package rna does not know.
type foreign struct{ rna.Space }

// broken is a space with one fault.
type broken struct {
	rna.Space
	fault string
}

func (b broken) Store(dst rna.Vector, src rna.Source) (float64, error) {
	m, err := b.Space.Store(dst, src)
	var refused *rna.NonFiniteError
	switch {
	case b.fault == "largest":
		m *= 2
	case b.fault == "takes NaN" && errors.As(err, &refused):
		err = nil
	case b.fault == "wrong element" && errors.As(err, &refused):
		err = &rna.NonFiniteError{Offset: refused.Offset + 1, Value: refused.Value}
	}
	return m, err
}

func (b broken) GramRow(row []float64, r rna.Residual, with []rna.Residual) error {
	switch b.fault {
	case "exponent":
		r.Exp = 0
	case "forgets y":
		r.Y = nil
	}
	err := b.Space.GramRow(row, r, with)
	if b.fault == "float32 products" {
		for j := range row {
			row[j] = float64(float32(row[j]))
		}
	}
	return err
}

func (b broken) Combine(dst rna.Sink, terms []rna.Term) error {
	if b.fault == "last term" && len(terms) > 1 {
		terms = terms[:len(terms)-1]
	}
	return b.Space.Combine(dst, terms)
}

// The suite finds faults: it is run in a process of its own for each, which must fail.
func TestFaults(t *testing.T) {
	if fault := os.Getenv("SPACETEST_FAULT"); fault != "" {
		Run(t, func(dim int) (rna.Space, error) { s, err := rna.NewHost64(dim, 1); return broken{s, fault}, err })
		return
	}
	for _, fault := range []string{"none", "largest", "takes NaN", "wrong element", "exponent", "forgets y",
		"float32 products", "last term"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFaults$")
		cmd.Env = append(os.Environ(), "SPACETEST_FAULT="+fault)
		out, err := cmd.CombinedOutput()
		if (err == nil) != (fault == "none") {
			t.Errorf("%s: %v\n%s", fault, err, out)
		}
	}
}
