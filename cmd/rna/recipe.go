package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"onlinerna/train"
)

// columns is the width of a line on a terminal.
const columns = 80

// follow sets the options of the recipe that the command line does not, and prints all.
func (f *trainFlags) follow(set *pflag.FlagSet, w io.Writer, first bool) error {
	r, err := train.FindRecipe(f.recipe)
	if err != nil {
		return err
	}
	said := map[string]bool{}
	set.Visit(func(g *pflag.Flag) { said[g.Name] = true })
	if said["batch"] && !said["accumulate"] {
		said["accumulate"] = true // the recipe's goes with its batch
	}
	words := []string{"Recipe " + r.Name + ":"}
	for _, o := range r.Options {
		value := o.Value
		if said[o.Name] {
			value = set.Lookup(o.Name).Value.String()
			if o.Name == "accumulate" && !set.Changed(o.Name) {
				continue
			}
		} else if err := set.Set(o.Name, o.Value); err != nil {
			return fmt.Errorf("recipe %s: --%s %s: %w", r.Name, o.Name, o.Value, err)
		}
		words = append(words, "--"+o.Name+"\u00a0"+value)
	}
	if !first {
		return nil
	}
	fmt.Fprintln(w, wrap(strings.Join(words, " "), "  "))
	fmt.Fprintln(w, wrap("From "+r.Source, "  "))
	return nil
}

// wrap breaks text at spaces into lines of a terminal; lines after the first begin with indent. A no-break space holds words together.
func wrap(text, indent string) string {
	if len([]rune(text)) <= columns {
		return strings.ReplaceAll(text, "\u00a0", " ")
	}
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(strings.ReplaceAll(text, "\u00a0", "\x00")) {
		word = strings.ReplaceAll(word, "\x00", " ")
		n := len([]rune(word))
		switch {
		case i == 0:
		case at+1+n > columns:
			b.WriteString("\n" + indent)
			at = len(indent)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

// paragraphs wraps text that is in paragraphs: lines that are indented stay as they are.
func paragraphs(text string) string {
	var out, part []string
	flush := func() {
		if len(part) > 0 {
			out = append(out, wrap(strings.Join(part, " "), ""))
			part = nil
		}
	}
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, " "), strings.HasPrefix(line, "\t"):
			flush()
			out = append(out, line)
		default:
			part = append(part, line)
		}
	}
	flush()
	return strings.Join(out, "\n")
}
