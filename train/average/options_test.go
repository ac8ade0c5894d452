package average

import (
	"testing"

	"onlinerna/train/option"
)

// TestLimits has the values at the limits of each option, and those beyond.
func TestLimits(t *testing.T) {
	for name, c := range map[string]struct{ good, bad []string }{
		"rna-window":     {[]string{"1", "100"}, []string{"0", "-1", "101"}},
		"rna-lambda":     {[]string{"0", "1e-9", "10", "auto"}, []string{"-1e-9", "inf", "nan", "much"}},
		"rna-tau":        {[]string{"0", "2.5"}, []string{"-0.1"}},
		"rna-beta":       {[]string{"0", "-1", "1.5"}, []string{"inf"}},
		"rna-start":      {[]string{"1", "90"}, []string{"0", "-1"}},
		"rna-per-epoch":  {[]string{"1", "50"}, []string{"0", "-1"}},
		"rna-every":      {[]string{"1", "50"}, []string{"0", "-1"}},
		"rna-bn-batches": {[]string{"1", "500"}, []string{"0", "-1"}},
		"averages":       {[]string{"2", "100", "2,100", "5,10"}, []string{"1", "101", "5,1", "0"}},
	} {
		try := func(text string) error {
			var o Options
			if err := Table.Apply(&o, option.Setting{Name: name, Text: text}); err != nil {
				return err
			}
			return Table.Check(&o)
		}
		for _, text := range c.good {
			if err := try(text); err != nil {
				t.Errorf("%s %s: %v", name, text, err)
			}
		}
		for _, text := range c.bad {
			if try(text) == nil {
				t.Errorf("%s %s is no error", name, text)
			}
		}
	}
}

// TestLambda: a λ is a number or a search, and the one replaces the other.
func TestLambda(t *testing.T) {
	var o Options
	v := lambdaValue{&o}
	for _, c := range []struct {
		set    string
		search bool
		value  float64
	}{{"0.1", false, .1}, {"auto", true, 0}, {"1e-9", false, 1e-9}} {
		if err := v.Set(c.set); err != nil || o.Search != c.search || (o.Lambda == nil) != c.search ||
			o.Lambda != nil && *o.Lambda != c.value || v.String() != map[bool]string{true: "auto", false: c.set}[c.search] &&
			v.String() != "1e-09" {
			t.Errorf("%s: %+v, %v", c.set, o, err)
		}
	}
	if v.Unset(); o.Lambda != nil || o.Search || v.String() != "" {
		t.Errorf("unset: %+v", o)
	}
}

func TestRule(t *testing.T) {
	x := .25
	for want, r := range map[string]Options{
		"lambda by held-out loss": {Search: true, Tau: &x},
		"tau 0.25":                {Tau: &x},
		"lambda 0.25":             {Lambda: &x},
		"lambda 1e-09":            {},
	} {
		if got := r.Rule(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
