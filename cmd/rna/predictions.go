package main

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"onlinerna/data"
)

// predictions writes a CSV file that appears when it is complete. What is no file, as a pipe, gets the lines as they come.
type predictions struct {
	*output
	set   data.Dataset
	names []string // of the outputs
	k     int
	buf   *bufio.Writer
	line  []byte
}

func newPredictions(path string, set data.Dataset, names []string) (*predictions, error) {
	o, err := create(path)
	if err != nil {
		return nil, err
	}
	p := &predictions{output: o, set: set, names: names, k: len(names), buf: bufio.NewWriterSize(o, 1<<20)}
	p.line = append(p.line, "path,label,label_name,predicted_name"...)
	for i := range names {
		p.line = fmt.Appendf(p.line, ",logit_%d", i)
	}
	return p, p.flush()
}

func (p *predictions) flush() error {
	_, err := p.buf.Write(append(p.line, '\n'))
	p.line = p.line[:0]
	return err
}

func (p *predictions) add(b *data.Batch, logits []float32) error {
	for i := range b.N {
		p.line = append(appendCSV(p.line, p.set.Name(b.Index[i])), ',')
		label, row := int(b.Labels[i]), logits[i*p.k:(i+1)*p.k]
		p.line = append(strconv.AppendInt(p.line, int64(label), 10), ',')
		if label >= 0 && label < p.k {
			p.line = appendCSV(p.line, p.names[label])
		}
		p.line = append(p.line, ',')
		if best := largest(row); best >= 0 {
			p.line = appendCSV(p.line, p.names[best])
		}
		for _, v := range row {
			p.line = strconv.AppendFloat(append(p.line, ','), float64(v), 'g', 9, 64)
		}
		if err := p.flush(); err != nil {
			return err
		}
	}
	return nil
}

// largest is the first of the largest numbers, -1 where one is NaN.
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
	return p.output.commit()
}

// appendCSV appends a field, quoted where it has to be.
func appendCSV(b []byte, field string) []byte {
	if !strings.ContainsAny(field, ",\"\r\n") {
		return append(b, field...)
	}
	return append(append(append(b, '"'), strings.ReplaceAll(field, `"`, `""`)...), '"')
}
