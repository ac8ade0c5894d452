package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"onlinerna/internal/text"
	"onlinerna/train/runs"
)

// heat is a figure of coloured cells, as SVG of a page.
type heat struct {
	Title              string
	Width, Height      int
	Left, Top, W, H    float64
	Levels             []level
	Texts              []cellText
	Note               string
	Data               heatData
	rows, cols         int
	cellWide, cellHigh float64
}

// level is all cells of a colour.
type level struct {
	Colour  string
	Opacity float64
	Path    string
}

// cellText is a text, centred, or to the left of the cells.
type cellText struct {
	X, Y        float64
	Class, Text string
	Turn        bool // by a quarter
}

// heatData has the cells for the pointer, by "row,column".
type heatData struct {
	Left   float64           `json:"left"`
	Top    float64           `json:"top"`
	Width  float64           `json:"width"` // of a cell
	Height float64           `json:"height"`
	Rows   []string          `json:"rows"`
	Cols   []string          `json:"cols"`
	Cells  map[string]string `json:"cells"`
}

// fill colours cells by values from −1 to 1, and tells the pointer their texts.
func (h *heat) fill(value func(row, col int) (x float64, words string, ok bool)) {
	h.W, h.H = round(h.cellWide*float64(h.cols)), round(h.cellHigh*float64(h.rows))
	h.Data.Left, h.Data.Top, h.Data.Width, h.Data.Height = h.Left, h.Top, h.cellWide, h.cellHigh
	h.Data.Cells = map[string]string{}
	const steps = 20
	paths := map[int]*strings.Builder{}
	for row := range h.rows {
		for col := range h.cols {
			x, words, ok := value(row, col)
			if !ok {
				continue
			}
			h.Data.Cells[fmt.Sprintf("%d,%d", row, col)] = words
			k := int(math.Round(steps * x))
			if k == 0 && x != 0 { // shows that there is something
				k = int(math.Copysign(1, x))
			}
			if k == 0 {
				continue
			}
			if paths[k] == nil {
				paths[k] = &strings.Builder{}
			}
			fmt.Fprintf(paths[k], "M%sh%[2]sv%[3]sh-%[2]sz", place(round(h.Left+h.cellWide*float64(col)), round(h.Top+
				h.cellHigh*float64(row))), strconv.FormatFloat(round(h.cellWide), 'f', -1, 64),
				strconv.FormatFloat(round(h.cellHigh), 'f', -1, 64))
		}
	}
	for k := -steps; k <= steps; k++ {
		if p := paths[k]; p != nil {
			colour := "c1"
			if k < 0 {
				colour = "c2"
			}
			h.Levels = append(h.Levels, level{colour, math.Abs(float64(k)) / steps, p.String()})
		}
	}
}

// maxColumns is the number of extrapolations that a page shows; of more it shows some, evenly.
const maxColumns = 50

// coefficientsOf draws the coefficients of a run's extrapolations; nil if there are none.
func coefficientsOf(r *runs.Run, several bool) *heat {
	g := coefficients(r.History)
	if g.rows == 0 {
		return nil
	}
	var epochs []int
	most := 0.
	for i, c := range g.c {
		if i%((len(g.c)+maxColumns-1)/maxColumns) == 0 {
			epochs = append(epochs, i)
		}
		for _, x := range c {
			most = max(most, math.Abs(x))
		}
	}
	h := &heat{Title: "Coefficients by epoch and age of the snapshot", Width: 460, Left: 46, Top: 26, rows: g.rows,
		cols: len(epochs)}
	h.cellWide = min(40, 404/float64(h.cols))
	h.cellHigh = min(24, max(6, 200/float64(h.rows)))
	h.fill(func(row, col int) (float64, string, bool) {
		x := g.Z(epochs[col], row)
		return x / most, fmt.Sprintf("%.4g", x), !math.IsNaN(x)
	})
	for row := range h.rows {
		h.Data.Rows = append(h.Data.Rows, text.Count(row, "snapshot")+" before the newest")
		if each := (h.rows + 9) / 10; row%each == 0 {
			h.Texts = append(h.Texts, cellText{X: h.Left - 5, Y: round(h.Top + h.cellHigh*(float64(row)+.5) + 4), Class: "e",
				Text: strconv.Itoa(row)})
		}
	}
	bottom := h.Top + h.H
	for col, i := range epochs {
		epoch := strconv.Itoa(g.first + i)
		h.Data.Cols = append(h.Data.Cols, "epoch "+epoch)
		if each := (h.cols + 11) / 12; col%each == 0 {
			h.Texts = append(h.Texts, cellText{X: round(h.Left + h.cellWide*(float64(col)+.5)), Y: bottom + 15, Class: "m",
				Text: epoch})
		}
	}
	h.Texts = append(h.Texts, cellText{X: round(h.Left + h.W/2), Y: bottom + 32, Class: "m", Text: "epoch"})
	h.Height = int(bottom) + 40
	h.Note = fmt.Sprintf("Rows count snapshots before the newest. Orange is positive, blue negative, up to ±%.3g. RNA's point is "+
		"the sum of the snapshots, each times its coefficient; those of a column add up to 1.", most)
	if several {
		h.Note += " They are those of " + r.Name + "."
	}
	return h
}

// maxDrawn is the number of classes up to which a page draws the confusion matrix, and maxCells that up to which cells
// have their counts.
const (
	maxDrawn = 40
	maxCells = 12
)

// confusion draws the matrix of few classes, and lists the most frequent mistakes.
func (e *Evaluation) confusion() (*heat, *pageTable) {
	all := make([]int, len(e.Names)) // images by label
	occurs := make([]bool, len(e.Names))
	var mistakes [][3]int
	for _, c := range e.Confusion {
		all[c[0]] += c[2]
		occurs[c[0]], occurs[c[1]] = true, true
		if c[0] != c[1] {
			mistakes = append(mistakes, c)
		}
	}
	var table *pageTable
	slices.SortStableFunc(mistakes, func(a, b [3]int) int { return cmp.Compare(b[2], a[2]) })
	if len(mistakes) > 0 {
		table = &pageTable{Head: []string{"label", "predicted as", "images", "of the label's, %"}, Note: "The most frequent mistakes."}
	}
	for _, c := range mistakes[:min(10, len(mistakes))] {
		table.Rows = append(table.Rows, []string{e.Names[c[0]], e.Names[c[1]], strconv.Itoa(c[2]),
			fmt.Sprintf("%.1f", 100*float64(c[2])/float64(all[c[0]]))})
	}
	var kept []int
	at := map[int]int{}
	for k, there := range occurs {
		if there {
			at[k], kept = len(kept), append(kept, k)
		}
	}
	n := len(kept)
	if n < 2 || n > maxDrawn {
		return nil, table
	}
	counts := map[[2]int]int{}
	for _, c := range e.Confusion {
		counts[[2]int{at[c[0]], at[c[1]]}] = c[2]
	}
	const names = 104 // the room for names
	h := &heat{Title: "Confusion", Width: 460, Left: names, Top: 26, rows: n, cols: n}
	h.cellWide = (460 - names - 2) / float64(n)
	h.cellHigh = h.cellWide
	h.fill(func(row, col int) (float64, string, bool) {
		k := counts[[2]int{row, col}]
		share := float64(k) / float64(max(1, all[kept[row]]))
		return share, fmt.Sprintf("%d images, %.1f %%", k, 100*share), k > 0
	})
	bottom := h.Top + h.H
	for i, k := range kept {
		h.Data.Rows = append(h.Data.Rows, "label "+e.Names[k])
		h.Data.Cols = append(h.Data.Cols, "predicted "+e.Names[k])
		middle := (float64(i) + .5) * h.cellWide
		name := text.Shorten(15, text.Printable(e.Names[k]))
		if h.cellHigh >= 11 || i%2 == 0 {
			h.Texts = append(h.Texts, cellText{X: names - 5, Y: round(h.Top + middle + 4), Class: "e", Text: name},
				cellText{X: round(h.Left + middle + 4), Y: bottom + 6, Class: "e", Text: name, Turn: true})
		}
		if n > maxCells {
			continue
		}
		for col := range kept {
			if x := counts[[2]int{i, col}]; x > 0 {
				class := "m"
				if float64(x) > .6*float64(all[k]) {
					class = "m on"
				}
				h.Texts = append(h.Texts, cellText{X: round(h.Left + (float64(col)+.5)*h.cellWide), Y: round(h.Top + middle + 4),
					Class: class, Text: strconv.Itoa(x)})
			}
		}
	}
	h.Height = int(bottom) + names
	h.Note = "Rows are labels, columns predictions; the colour shows the share of the label's images."
	return h, table
}
