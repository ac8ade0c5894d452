// Package canvas makes the canvas on which figures are drawn: SVG, PNG or PDF.
package canvas

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"onlinerna/internal/files"
	"onlinerna/internal/text"
)

// SVG is the default format of figures.
const SVG = "svg"

// Formats are the names that New takes, which are also the extensions of files.
func Formats() []string { return []string{SVG, "png", "pdf"} }

// dpi is the resolution of PNG.
const dpi = 150

// FormatOf returns the format of a file name's extension.
func FormatOf(path string) (string, error) {
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	if !slices.Contains(Formats(), format) {
		return "", fmt.Errorf("%s: figures are drawn as .%s: name the file so", path, strings.Join(Formats(), ", ."))
	}
	return format, nil
}

// svg is an SVG whose texts fall back to any sans-serif font if the one used to measure them is missing.
type svg struct{ *vgsvg.Canvas }

func (c svg) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	if _, err := c.Canvas.WriteTo(&b); err != nil {
		return 0, err
	}
	n, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")))
	return int64(n), err
}

// FillString draws a text. XML has no control characters, not even escaped ones.
func (c svg) FillString(face font.Face, at vg.Point, s string) {
	c.Canvas.FillString(face, at, text.Printable(s))
}

// New is an empty canvas of a format.
func New(format string, width, height vg.Length) (vg.CanvasWriterTo, error) {
	switch format {
	case SVG:
		return svg{vgsvg.New(width, height)}, nil
	case "png":
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}, nil
	case "pdf":
		return pdf{vgpdf.New(width, height)}, nil
	}
	return nil, fmt.Errorf("no figures of format %q: want %s", format, strings.Join(Formats(), ", "))
}

// Help ends the help of options for figures.
const Help = ": SVG, PNG or PDF by its extension"

// Draw creates a file, unless path is empty, and draws into it in the format of its extension.
func Draw(path string, draw func(w io.Writer, format string) error) error {
	if path == "" {
		return nil
	}
	format, err := FormatOf(path)
	if err != nil {
		return err
	}
	return files.WriteTo(path, func(w io.Writer) error { return draw(w, format) })
}
