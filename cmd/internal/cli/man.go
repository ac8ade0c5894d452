package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/internal/files"
)

// ManPages writes a manual page of root and of each command below it into a folder, and returns their number.
func ManPages(root *cobra.Command, dir string) (n int, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	err = EachCommand(root, func(c *cobra.Command) error {
		n++
		return files.WriteTo(filepath.Join(dir, pageName(c)+".1"), func(w io.Writer) error { return manPage(w, c) })
	})
	return n, err
}

// EachCommand calls f with cmd and all commands below it that the help names, until a call fails.
func EachCommand(cmd *cobra.Command, f func(*cobra.Command) error) error {
	if err := f(cmd); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			if err := EachCommand(c, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// pageName is the name of a command's page: rna-bench-train.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage writes the page of cmd in roff's macros of manual pages.
func manPage(w io.Writer, cmd *cobra.Command) error {
	var b strings.Builder
	info, _ := debug.ReadBuildInfo()
	day, _, _ := strings.Cut(BuiltFrom(info).Time, "T")
	fmt.Fprintf(&b, ".TH %s 1 \"%s\" \"rna\" \"rna manual\"\n.nh\n.ad l\n", roffWord(strings.ToUpper(pageName(cmd))), day)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roffWord(pageName(cmd)), roffWord(cmd.Short))
	rest := strings.TrimPrefix(useLine(cmd), cmd.CommandPath())
	fmt.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fR%s\n", roffWord(cmd.CommandPath()), roffWord(rest))
	if cmd.Long != "" {
		b.WriteString(".SH DESCRIPTION\n")
		roffParagraphs(&b, strings.TrimSpace(cmd.Long))
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roffWord(pageName(c)), roffWord(c.Short))
			}
		}
	}
	b.WriteString(".SH OPTIONS\n")
	groups := groupsOf(cmd)
	for _, g := range groups {
		if len(groups) > 1 && g.HasAvailableFlags() {
			fmt.Fprintf(&b, ".SS %s\n", roffWord(g.Title))
		}
		g.VisitAll(func(f *pflag.Flag) { roffOption(&b, f) })
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.EX\n%s\n.EE\n", roff(cmd.Example))
	}
	b.WriteString(".SH EXIT STATUS\n0, 1 after an error, 2 for wrong usage, 130 when interrupted.\n")
	var also []string
	if cmd.HasParent() {
		also = append(also, pageName(cmd.Parent()))
		for _, c := range cmd.Parent().Commands() {
			if c != cmd && c.IsAvailableCommand() {
				also = append(also, pageName(c))
			}
		}
		b.WriteString(".SH SEE ALSO\n")
		for i, name := range also {
			end := ","
			if i == len(also)-1 {
				end = ""
			}
			fmt.Fprintf(&b, ".BR %s (1)%s\n", roffWord(name), end)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// roffOption writes an option with its usage and its default.
func roffOption(b *strings.Builder, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	kind, use := pflag.UnquoteUsage(f)
	name := "\\fB" + roffWord("--"+f.Name) + "\\fR"
	if f.Shorthand != "" {
		name = "\\fB" + roffWord("-"+f.Shorthand) + "\\fR, " + name
	}
	if kind != "" {
		name += " \\fI" + roffWord(kind) + "\\fR"
	}
	switch f.DefValue {
	case "", "0", "false", "[]", "0s":
	default:
		use += " (default " + f.DefValue + ")"
	}
	fmt.Fprintf(b, ".TP\n%s\n%s\n", name, roff(use))
}

// roffParagraphs writes text in paragraphs; lines that are indented stay as they are.
func roffParagraphs(b *strings.Builder, text string) {
	for i, part := range strings.Split(text, "\n\n") {
		part = strings.Trim(part, "\n")
		switch {
		case strings.HasPrefix(part, " "), strings.HasPrefix(part, "\t"):
			fmt.Fprintf(b, ".PP\n.EX\n%s\n.EE\n", roff(part))
		default:
			if i > 0 {
				b.WriteString(".PP\n")
			}
			b.WriteString(roff(part) + "\n")
		}
	}
}

// roff is text in roff: characters that it interprets stand for themselves.
func roff(text string) string {
	lines := strings.Split(roffWord(text), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

var roffWords = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// roffWord is roff for text within a line.
func roffWord(text string) string { return roffWords.Replace(text) }
