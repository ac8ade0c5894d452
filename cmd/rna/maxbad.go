package main

import "onlinerna/data"

// maxBadFlag is the value of --max-bad.
type maxBadFlag data.MaxBad

// maxBad adds --max-bad.
func (g group) maxBad(p *data.MaxBad) {
	*p = data.UsualBad
	g.Var((*maxBadFlag)(p), "max-bad", "unreadable images that are skipped before it is an error: a `number`, as 20, or a share, as 5% or 0.05 (default: 1 %, at least 10, but no more than a tenth)")
	g.Lookup("max-bad").DefValue = ""
}

// Type, String and Set are pflag.Value.
func (f *maxBadFlag) Type() string { return "number" }

func (f *maxBadFlag) String() string { return data.MaxBad(*f).String() }

func (f *maxBadFlag) Set(s string) error {
	m, err := data.ParseMaxBad(s)
	if err == nil {
		*f = maxBadFlag(m)
	}
	return err
}
