package study

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"onlinerna/rna/convex"
)

func sonar(t *testing.T, condition string, stochastic bool) *convex.Risk {
	t.Helper()
	d, err := convex.Sonar()
	if err != nil {
		t.Fatal(err)
	}
	r, err := convex.NewRisk(d, convex.Logistic)
	if err != nil {
		t.Fatal(err)
	}
	r.Reg = Regularisation(r, condition, stochastic)
	return r
}

// The figure comparison_reg: without regularisation RNA that goes on from its own points is unstable, and λ = 1e-6
// keeps it below gradient descent.
func TestAndersonIsUnstable(t *testing.T) {
	s, err := New(t.Context(), sonar(t, "regular", false), Anderson(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	most := func(name string) (peak float64, rises int) {
		r := s.Run(name)
		if r == nil || r.Err != nil {
			t.Fatalf("%s: %v", name, r)
		}
		for k, v := range r.Values {
			peak = max(peak, v-s.Best.Value)
			if k > 0 && v > 2*r.Values[k-1] {
				rises++
			}
		}
		return peak, rises
	}
	start := math.Ln2 - s.Best.Value
	for _, c := range []struct {
		name   string
		stable bool
	}{
		{"online, λ = 0 (Anderson)", false},
		{"online, λ = 1e-6", true},
		{"online, λ = 1e-8 where f falls", true},
	} {
		peak, rises := most(c.name)
		end := s.Gap(*s.Run(c.name))
		t.Logf("%s: at most %.3g where it starts at %.3g, doubles in %d iterations, ends at %.3g", c.name, peak, start,
			rises, end)
		if !c.stable && !(peak > 100*start && rises >= 20 && end > start) {
			t.Errorf("%s is not unstable", c.name)
		}
		if c.stable && !(peak <= 20*start && end < s.Gap(*s.Run("gd"))/10) {
			t.Errorf("%s is not stable, or not ahead of gradient descent's %.3g", c.name, s.Gap(*s.Run("gd")))
		}
	}
}

func TestStudy(t *testing.T) {
	risk := sonar(t, "well", true)
	validation, err := convex.Sonar()
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	s, err := New(t.Context(), risk, Plans([]convex.Method{convex.SAGA, convex.SVRG}, 1e-8), Options{
		Stochastic: true, Iterations: 6, Validation: validation,
		Progress: func(p Plan, total int) func(int) {
			if total != 6 {
				t.Errorf("%d iterations are announced", total)
			}
			return func(at int) {
				if at < 0 {
					told = append(told, p.Name)
				}
			}
		},
	})
	if err != nil || s.Failed() != nil || !slices.Equal(told, []string{"saga", "svrg"}) {
		t.Fatal(err, s.Failed(), told)
	}
	if s.Run("saga") == nil || s.Run("gd") != nil || len(s.Runs[0].Wrong) != 7 || s.Gap(s.Runs[0]) > 1e-6 {
		t.Errorf("%+v", s.Runs)
	}
	var table, curves, svg bytes.Buffer
	if err := errors.Join(s.Table(&table), s.CSV(&curves), s.Draw(&svg, "svg")); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&curves).ReadAll()
	if err != nil || len(rows) != 1+7+4 || strings.Join(rows[0], ",") != "method,epoch,f_minus_fstar,validation_error" {
		t.Errorf("%v, %v", err, rows)
	}
	if !strings.Contains(table.String(), "VALIDATION ERROR") || !strings.Contains(svg.String(), "validation error, %") {
		t.Error(table.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(ctx, risk, Plans([]convex.Method{convex.SAGA}, 0), Options{Stochastic: true}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("a cancelled study gives %v", err)
	}
	// A method that is not of its kind fails alone, and all together is an error.
	s, err = New(t.Context(), risk, Plans([]convex.Method{convex.GD}, 0), Options{Stochastic: true})
	if err != nil || s.Failed() == nil {
		t.Errorf("%v, %v", err, s.Failed())
	}
}

func TestFigures(t *testing.T) {
	names := map[string]bool{}
	for _, f := range Figures(1e-8) {
		names[f.Name] = true
		if len(f.Plans) == 0 || !slices.Contains(Conditions(), f.Condition) {
			t.Errorf("%+v", f)
		}
	}
	if len(names) != 8 || !names["deterministic-bad"] || !names["stochastic-well"] || !names["anderson-regular"] {
		t.Errorf("figures %v", names)
	}
	r := sonar(t, "well", false)
	if got := Regularisation(r, "bad", false) / r.Smoothness(); math.Abs(got-1e-9) > 1e-20 ||
		Regularisation(r, "none", true) != 0 {
		t.Errorf("regularisation of %g", got)
	}
}

// The conditionings' constants, on the rows (1, 0), (2, 1) and (0, 0).
func TestRegularisation(t *testing.T) {
	x, err := convex.NewDense(3, 2, []float64{1, 0, 2, 1, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	r, err := convex.NewRisk(&convex.Data{X: x, Y: []float64{1, -1, 1}}, convex.Logistic)
	if err != nil {
		t.Fatal(err)
	}
	l := (3 + 2*math.Sqrt2) / 12 // ‖XXᵀ‖₂/(4n): XᵀX = (5, 2; 2, 1) has the eigenvalues 3 ± 2√2
	for _, c := range []struct {
		condition                string
		deterministic, bySamples float64
	}{{"well", 1e-3 * l, 500. / 3}, {"regular", 1e-6 * l, 5. / 3}, {"bad", 1e-9 * l, .05 / 3}, {"other", 0, 0}} {
		if got := Regularisation(r, c.condition, false); math.Abs(got-c.deterministic) > 1e-9*c.deterministic {
			t.Errorf("%s: %g, want %g", c.condition, got, c.deterministic)
		}
		if got := Regularisation(r, c.condition, true); math.Abs(got-c.bySamples) > 1e-12*c.bySamples {
			t.Errorf("%s, by samples: %g, want %g", c.condition, got, c.bySamples)
		}
	}
}
