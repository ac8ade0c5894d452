package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"onlinerna/internal/canvas"
	"onlinerna/internal/files"
)

// plotHelp ends the help of options for figures.
const plotHelp = ": SVG, PNG or PDF by its extension"

// checkOutputs finds files that could not be written, or would be written twice, before the work begins. Empty names are no files.
func checkOutputs(paths ...string) error {
	seen := map[string]bool{}
	for _, path := range paths {
		if path == "" {
			continue
		}
		dir := filepath.Dir(path)
		if st, err := os.Stat(dir); err != nil {
			return fmt.Errorf("%s cannot be written: %w", path, err)
		} else if !st.IsDir() {
			return fmt.Errorf("%s cannot be written: %s is no folder", path, dir)
		}
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			return fmt.Errorf("%s cannot be written: it is a folder", path)
		}
		if clean := filepath.Clean(path); seen[clean] {
			return fmt.Errorf("%s is to be written twice", path)
		} else {
			seen[clean] = true
		}
	}
	return nil
}

// An output is a file that a command writes: it appears whole or not at all.
type output struct {
	io.Writer
	file *files.File // nil for a device or a pipe, which is written to as it is
	as   *os.File
}

func create(path string) (*output, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &output{Writer: f, as: f}, err
	}
	f, err := files.Create(path)
	if err != nil {
		return nil, err
	}
	return &output{Writer: f, file: f}, nil
}

func (o *output) commit() error {
	if o.file == nil {
		return o.as.Close()
	}
	return o.file.Commit()
}

// abort removes what is not complete; after commit there is nothing to remove.
func (o *output) abort() {
	if o.file == nil {
		o.as.Close()
		return
	}
	o.file.Abort()
}

// writeFile writes a file, unless path is empty.
func writeFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	o, err := create(path)
	if err != nil {
		return err
	}
	defer o.abort()
	if err := write(o); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return o.commit()
}

// drawFile creates a file, unless path is empty, and draws into it in the format of its extension.
func drawFile(path string, draw func(w io.Writer, format string) error) error {
	if path == "" {
		return nil
	}
	format, err := canvas.FormatOf(path)
	if err != nil {
		return err
	}
	return writeFile(path, func(w io.Writer) error { return draw(w, format) })
}
