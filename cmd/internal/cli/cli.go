// Package cli holds the parts of a command line that do not depend on the commands: groups of flags, help, manual
// pages, completion, mistakes, and the files that commands read and write.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/internal/files"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
)

// Stopped is an interruption, with the message for the user.
type Stopped string

// ErrStopped is an interruption that the user knows of.
const ErrStopped = Stopped("stopped")

// Error is the message.
func (e Stopped) Error() string { return string(e) }

// ExitStatus is the exit status of an interrupted command.
func (e Stopped) ExitStatus() int { return 130 }

// Interrupted replaces an error after an interruption.
func Interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return Stopped("interrupted, nothing was written")
	}
	return err
}

// Until is w until ctx ends: then its writes fail.
func Until(ctx context.Context, w io.Writer) io.Writer { return until{w, ctx} }

type until struct {
	io.Writer
	ctx context.Context
}

func (u until) Write(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Writer.Write(b)
}

// A usageError is a mistake in the command line.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usage is a mistake in the command line of cmd.
func Usage(cmd *cobra.Command, err error) error { return &usageError{cmd.CommandPath(), err} }

// Run executes a command line and returns the exit status: 0, 1 for an error, 2 for wrong usage, 130 when interrupted.
// An error with a method ExitStatus ends with that, and without a message: the user knows.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	stderr = terminal.Guard(stderr)
	if terminal.Is(stdout) { // a file or a pipe may take images
		stdout = terminal.Guard(stdout)
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetHelpCommand(NewHelp())
	strictCompletion(root, args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	status, message := 1, err.Error()
	var stopped Stopped
	if errors.As(err, &stopped) {
		status = stopped.ExitStatus()
		message = strings.TrimSpace(strings.TrimPrefix(message, string(ErrStopped)))
	} else if e, ok := err.(interface{ ExitStatus() int }); ok {
		return e.ExitStatus()
	}
	if message != "" {
		message = strings.TrimPrefix(message, "rna: ") // package rna says it too
		message = terminal.StyleOf(stderr).Error("rna:") + " " + text.PrintableLines(message)
		fmt.Fprintln(stderr, terminal.Wrap(stderr, message, "  "))
	}
	var u *usageError
	if errors.As(err, &u) {
		fmt.Fprintf(stderr, "Run '%s --help' for its usage.\n", u.command)
		return 2
	}
	return status
}

// JSON are the options of a command that can write its results as JSON: --json prints them in place of tables, and
// --json-file writes them to a file.
type JSON struct {
	Print bool
	File  string
}

// Add adds the options.
func (j *JSON) Add(g Group) {
	g.BoolVar(&j.Print, "json", false, "print JSON in place of tables")
	g.StringVar(&j.File, "json-file", "", "also write the JSON to this `file`")
}

// Log is the writer for lines beside the results: out, or log where JSON is printed there.
func (j *JSON) Log(out, log io.Writer) io.Writer {
	if j.Print {
		return log
	}
	return out
}

// Write writes v to the file, and prints it, or else the table.
func (j *JSON) Write(out io.Writer, v any, table func(io.Writer) error) error {
	if err := files.WriteTo(j.File, func(w io.Writer) error { return Encode(w, v) }); err != nil || !j.Print {
		return errors.Join(table(out), err)
	}
	return Encode(out, v)
}

// Encode writes v as indented JSON.
func Encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
