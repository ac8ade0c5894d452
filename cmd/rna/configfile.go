package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"onlinerna/train"
)

// readFile takes the options of --config that the command line does not say.
func (f *trainFlags) readFile(set *pflag.FlagSet) error {
	if f.recipe != "" {
		return errors.New("--config and --recipe exclude each other")
	}
	c, err := train.ReadConfigFile(f.configFile)
	if err != nil {
		return err
	}
	f.file = &c
	said := *f
	values := map[*pflag.Flag]func() error{}
	set.Visit(func(g *pflag.Flag) {
		if s, ok := g.Value.(pflag.SliceValue); ok {
			list := s.GetSlice()
			values[g] = func() error { return s.Replace(list) }
			return
		}
		text := g.Value.String()
		values[g] = func() error { return g.Value.Set(text) }
	})
	delete(values, set.Lookup("rna-lambda")) // it has no text
	f.Config = c
	for _, set := range values {
		if err := set(); err != nil {
			return err
		}
	}
	if set.Changed("rna-lambda") {
		f.RNA.Lambda, f.RNA.Search, f.RNA.Tau = said.RNA.Lambda, said.RNA.Search, nil
	}
	if set.Changed("rna-tau") {
		f.RNA.Lambda, f.RNA.Search = nil, false
	}
	if set.Changed("data") { // the classes are others
		f.Classes, f.NumClasses = nil, said.NumClasses
	}
	if _, err := os.Stat(filepath.Join(f.Out, "config.json")); err == nil && !set.Changed("out") { // the run that the file is of
		f.Out = ""
	}
	for name, take := range map[string]func(){
		"device": func() { f.device = c.Device }, "precision": func() { f.precision = c.Precision },
		"deterministic": func() { f.deterministic = c.Deterministic },
	} {
		if !set.Changed(name) {
			take()
		}
	}
	if f.device == "" {
		f.device = "auto"
	}
	return nil
}

// says whether an option is to be taken from the command line: there is no file, or the command line has it.
func (f *trainFlags) says(set *pflag.FlagSet, name string) bool {
	return f.file == nil || set.Changed(name)
}
