package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"onlinerna/train"
)

// lambdaFlag is the value of --rna-lambda: a number, or auto.
type lambdaFlag struct{ rna *train.RNAConfig }

var _ pflag.Value = lambdaFlag{}

// Type, String and Set are pflag.Value.
func (f lambdaFlag) Type() string { return "number" }

func (f lambdaFlag) String() string { return "" }

func (f lambdaFlag) Set(s string) error {
	f.rna.Lambda, f.rna.Search = nil, s == "auto"
	if f.rna.Search {
		return nil
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return fmt.Errorf("%q is neither a number nor auto", s)
	}
	f.rna.Lambda = &x
	return nil
}
