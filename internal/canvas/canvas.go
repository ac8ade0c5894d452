// Package canvas makes the canvas on which figures are drawn: SVG, PNG or PDF.
package canvas

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// SVG is the format of figures of which nothing is said.
const SVG = "svg"

// Formats are the names that New takes, which are also the extensions of files.
func Formats() []string { return []string{SVG, "png", "pdf"} }

// dpi is the resolution of PNG.
const dpi = 150

// FormatOf is the format that the extension of a file's name says.
func FormatOf(path string) (string, error) {
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	if !slices.Contains(Formats(), format) {
		return "", fmt.Errorf("%s: figures are drawn as .%s: name the file so", path, strings.Join(Formats(), ", ."))
	}
	return format, nil
}

// New is an empty canvas of a format.
func New(format string, width, height vg.Length) (vg.CanvasWriterTo, error) {
	switch format {
	case SVG:
		return vgsvg.New(width, height), nil
	case "png":
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}, nil
	case "pdf":
		return pdf{vgpdf.New(width, height)}, nil
	}
	return nil, fmt.Errorf("no figures of format %q: want %s", format, strings.Join(Formats(), ", "))
}
