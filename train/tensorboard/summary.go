package tensorboard

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"onlinerna/internal/protobuf"
	"onlinerna/train/option"
)

// Fields of tensorflow.Summary.Value, and values of its enumerations.
const (
	simpleValue = 2
	imageValue  = 4
	histoValue  = 5
	tensorValue = 8
	metadata    = 9

	tensorClass = 2 // of data
	floatType   = 1
	stringType  = 7
)

// value is tensorflow.Summary.Value.
func value(tag string, parts ...[]byte) []byte {
	b := protobuf.Bytes(nil, 1, tag)
	for _, p := range parts {
		b = append(b, p...)
	}
	return protobuf.Bytes(nil, 1, b)
}

// plugin is the SummaryMetadata of a value for a plugin.
func plugin(name string, content []byte, class uint64) []byte {
	b := protobuf.Bytes(nil, 1, name)
	if content != nil {
		b = protobuf.Bytes(b, 2, content)
	}
	b = protobuf.Bytes(nil, 1, b)
	if class != 0 {
		b = protobuf.Varint(b, 4, class)
	}
	return protobuf.Bytes(nil, metadata, b)
}

// text is a text in Markdown.
func text(tag, markdown string) []byte {
	t := protobuf.Bytes(protobuf.Bytes(protobuf.Varint(nil, 1, stringType), 2, ""), 8, markdown)
	return value(tag+"/text_summary", plugin("text", nil, tensorClass), protobuf.Bytes(nil, tensorValue, t))
}

// picture is an image of three channels.
func picture(tag string, width, height int, png []byte) []byte {
	b := protobuf.Varint(protobuf.Varint(protobuf.Varint(nil, 1, uint64(height)), 2, uint64(width)), 3, 3)
	return value(tag, protobuf.Bytes(nil, imageValue, protobuf.Bytes(b, 4, png)))
}

// hparams is a value of the plugin for hyperparameters: field and content of its HParamsPluginData.
func hparams(tag string, field int, content []byte) []byte {
	none := protobuf.Bytes(protobuf.Varint(nil, 1, floatType), 2, protobuf.Bytes(nil, 2, protobuf.Varint(nil, 1, 0)))
	return value("_hparams_/"+tag, plugin("hparams", protobuf.Bytes(nil, field, content), 0),
		protobuf.Bytes(nil, tensorValue, none))
}

// start is the value with the options of a run: numbers as numbers.
func start(options []option.Setting, at time.Time) []byte {
	var b []byte
	for _, x := range options {
		var v []byte
		text := x.String()
		var number float64
		switch _, err := fmt.Sscanf(text, "%g", &number); {
		case text == "true" || text == "false":
			v = protobuf.Varint(nil, 4, uint64(len("false")-len(text)))
		case err == nil && fmt.Sprint(number) == text:
			v = protobuf.Fixed64(nil, 2, math.Float64bits(number))
		default:
			v = protobuf.Bytes(nil, 3, text)
		}
		b = protobuf.Bytes(b, 1, protobuf.Bytes(protobuf.Bytes(nil, 1, x.Name), 2, v))
	}
	return hparams("session_start_info", 3, protobuf.Fixed64(b, 5, math.Float64bits(seconds(at))))
}

// end is the value that ends a run's session.
func end(at time.Time) []byte {
	const success = 1
	return hparams("session_end_info", 4, protobuf.Fixed64(protobuf.Varint(nil, 1, success), 2,
		math.Float64bits(seconds(at))))
}

func seconds(at time.Time) float64 { return float64(at.UnixNano()) / 1e9 }

// table is the options as a table in Markdown.
func table(options []option.Setting) string {
	var b strings.Builder
	b.WriteString("| option | value |\n|-|-|\n")
	for _, x := range options {
		s := strings.NewReplacer("|", "&#124;", "<", "&lt;", "\n", " ", "`", "&#96;").Replace(x.String())
		fmt.Fprintf(&b, "| %s | %s |\n", x.Name, s)
	}
	return b.String()
}

// buckets is the number of equal intervals of a histogram.
const buckets = 40

// histogram is a value with the distribution of numbers. Those that are not finite are left out.
func histogram(tag string, list []float32) []byte {
	lo, hi, n := math.Inf(1), math.Inf(-1), 0
	var sum, squares float64
	finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	for _, x32 := range list {
		if x := float64(x32); finite(x) {
			lo, hi, n = min(lo, x), max(hi, x), n+1
			sum, squares = sum+x, squares+x*x
		}
	}
	if n == 0 {
		return nil
	}
	limits, counts := []float64{hi}, []float64{float64(n)}
	if lo < hi {
		limits, counts = nil, make([]float64, buckets)
		for k := range buckets {
			limits = append(limits, lo+(hi-lo)*float64(k+1)/buckets)
		}
		limits[buckets-1] = hi
		for _, x := range list {
			if x := float64(x); finite(x) {
				k, _ := slices.BinarySearch(limits, x)
				counts[k]++
			}
		}
		limits, counts = append([]float64{lo}, limits...), append([]float64{0}, counts...)
	}
	var b []byte
	for i, x := range []float64{lo, hi, float64(n), sum, squares} {
		b = protobuf.Fixed64(b, i+1, math.Float64bits(x))
	}
	for i, l := range [][]float64{limits, counts} {
		var packed []byte
		for _, x := range l {
			packed = binary.LittleEndian.AppendUint64(packed, math.Float64bits(x))
		}
		b = protobuf.Bytes(b, 6+i, packed)
	}
	return value(tag, protobuf.Bytes(nil, histoValue, b))
}
