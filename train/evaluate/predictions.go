package evaluate

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"onlinerna/data"
	"onlinerna/internal/files"
	"onlinerna/internal/text"
	"onlinerna/train/network"
)

// predictions writes a CSV file that appears once it is complete. A pipe or device gets the lines as they come.
type predictions struct {
	*files.Output
	buf *bufio.Writer
}

func newPredictions(path string, names []string, m *network.Meaning) (*predictions, error) {
	o, err := files.NewOutput(path)
	if err != nil {
		return nil, err
	}
	p := &predictions{o, bufio.NewWriterSize(o, 1<<20)}
	line := []byte("path,label,label_name,predicted_name")
	switch m.Task {
	case data.MultiLabel:
		line = []byte("path,labels,predicted")
	case data.Regression:
		line = []byte("path")
		for _, what := range []string{"true ", "predicted "} {
			for _, name := range names {
				line = appendCSV(append(line, ','), what+name)
			}
		}
		names = nil
	}
	for i := range names {
		line = fmt.Appendf(line, ",logit_%d", i)
	}
	return p, p.write(append(line, '\n'))
}

func (p *predictions) write(lines []byte) error {
	_, err := p.buf.Write(lines)
	return err
}

// appendPredictions appends a line for each image of a batch.
func (o *Options) appendPredictions(lines []byte, e *evaluation, b *data.Batch, logits []float32) []byte {
	if e.net.Meaning.Classifies() {
		return appendPredictions(lines, e.set, o.report.names, b, logits)
	}
	m, k, names := &e.net.Meaning, len(logits)/b.N, e.set.Classes()
	row := make([]float64, len(names))
	for i, index := range b.Index[:b.N] {
		lines = appendCSV(lines, e.set.Name(index))
		outputs := logits[i*k:][:len(names)]
		values := m.Values(outputs)
		if m.Task == data.Regression {
			data.Targets(e.set, index, row)
			for _, x := range append(slices.Clone(row), values...) {
				lines = strconv.AppendFloat(append(lines, ','), x, 'g', 9, 64)
			}
			lines = append(lines, '\n')
			continue
		}
		var found []string
		for class, p := range values {
			if p >= m.Threshold(class) {
				found = append(found, names[class])
			}
		}
		lines = appendCSV(append(lines, ','), strings.Join(data.Shown(e.set, index), ";"))
		lines = appendCSV(append(lines, ','), strings.Join(found, ";"))
		for _, v := range outputs {
			lines = strconv.AppendFloat(append(lines, ','), float64(v), 'g', 9, 64)
		}
		lines = append(lines, '\n')
	}
	return lines
}

// appendPredictions appends a line for each image of a batch. names are those of the outputs.
func appendPredictions(lines []byte, set data.Dataset, names []string, b *data.Batch, logits []float32) []byte {
	k := len(names)
	for i := range b.N {
		lines = append(appendCSV(lines, set.Name(b.Index[i])), ',')
		label, row := int(b.Labels[i]), logits[i*k:(i+1)*k]
		lines = append(strconv.AppendInt(lines, int64(label), 10), ',')
		if label >= 0 && label < k {
			lines = appendCSV(lines, names[label])
		}
		lines = append(lines, ',')
		if best := largest(row); best >= 0 {
			lines = appendCSV(lines, names[best])
		}
		for _, v := range row {
			lines = strconv.AppendFloat(append(lines, ','), float64(v), 'g', 9, 64)
		}
		lines = append(lines, '\n')
	}
	return lines
}

// largest returns the index of the first largest number, -1 if one is NaN.
func largest(row []float32) int {
	best := -1
	for i, v := range row {
		if v != v {
			return -1
		}
		if best < 0 || v > row[best] {
			best = i
		}
	}
	return best
}

func (p *predictions) commit() error {
	if err := p.buf.Flush(); err != nil {
		return err
	}
	return p.Output.Commit()
}

// appendCSV appends a field, quoted if necessary.
func appendCSV(b []byte, field string) []byte {
	field = text.Cell(field)
	if !strings.ContainsAny(field, ",\"\r\n") {
		return append(b, field...)
	}
	return append(append(append(b, '"'), strings.ReplaceAll(field, `"`, `""`)...), '"')
}
