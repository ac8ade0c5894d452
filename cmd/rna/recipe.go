package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"onlinerna/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/option"
	"onlinerna/train/recipe"
)

// build makes the config of the recipe or the file, and of the command line, which wins.
func (f *trainFlags) build() error {
	var c train.Spec
	options := train.Options()
	switch {
	case f.configFile != "" && f.recipe != "":
		return errors.New("--config and --recipe exclude each other")
	case f.configFile != "":
		list, err := train.ReadOptions(f.configFile)
		if err != nil {
			return err
		}
		if err := options.Apply(&c, list...); err != nil {
			return fmt.Errorf("%s: %w", f.configFile, err)
		}
		if _, err := os.Stat(filepath.Join(c.Out, "config.json")); err == nil { // the run that the file is of
			c.Out = ""
		}
	case f.recipe != "":
		r, err := recipe.Find(f.recipe)
		if err != nil {
			return err
		}
		if err := options.Apply(&c, r.Settings...); err != nil {
			return fmt.Errorf("recipe %s: %w", r.Name, err)
		}
	}
	if err := options.Apply(&c, f.said...); err != nil {
		return cli.Dashed(err)
	}
	if run, err := findRun(c.Init); err != nil {
		return err
	} else if run != nil {
		c.Init = run.file
	}
	f.Spec = c
	var idle []option.Setting
	for _, x := range f.said {
		if strings.HasPrefix(x.Name, "rna-") || x.Name == "averages" {
			idle = append(idle, x)
		}
	}
	if f.RNA.Mode == average.Off && len(idle) > 0 {
		return fmt.Errorf("--rna off does not take %s", cli.Said(idle))
	}
	return nil
}

// tellRecipe prints the options of the recipe, those that the command line overrules with its values.
func (f *trainFlags) tellRecipe(w io.Writer) {
	r, err := recipe.Find(f.recipe)
	if err != nil {
		return // as build has said
	}
	words := []string{"Recipe " + r.Name + ":"}
	for _, x := range r.Settings {
		o := train.Options().Find(x.Name)
		if !o.IsSet(&f.Spec) && x.Name == "accumulate" { // it goes with the recipe's batch
			continue
		}
		value := x.String()
		for _, said := range f.said {
			if said.Name == x.Name {
				value = said.String()
			}
		}
		words = append(words, "--"+x.Name+"\u00a0"+value)
	}
	fmt.Fprintln(w, terminal.Wrap(w, strings.Join(words, " "), "  "))
	fmt.Fprintln(w, terminal.Wrap(w, "From "+r.Source, "  "))
}
