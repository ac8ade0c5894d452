package main

import "onlinerna/data"

// maxBadFlag is the value of --max-bad.
type maxBadFlag data.MaxBad

// maxBad adds --max-bad.
func (g group) maxBad(p *data.MaxBad) {
	*p = data.UsualBad
	g.Var((*maxBadFlag)(p), "max-bad", optionHelp("max-bad"))
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
