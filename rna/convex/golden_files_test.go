package convex

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"onlinerna/internal/golden"
	"onlinerna/internal/mat"
)

// data adds rows and targets, or the error.
func addData(s *golden.Script, d *Data, err error) {
	if err != nil {
		s.Line("  ", err)
		return
	}
	if d == nil {
		s.Line("   nothing")
		return
	}
	n, width := d.X.Dims()
	s.Line("  ", n, "×", width, "sparse", d.X.index != nil, "stride", d.X.stride, "nonzeros", d.X.NonZeros(), "labels",
		d.Labels[:], "targets", d.Y)
	w := make([]float64, width)
	for j := range w {
		w[j] = float64(j%5) - 1.5
	}
	for i := range min(n, 12) {
		columns, values := d.X.Row(i)
		if len(values) > 12 {
			columns, values = columns[:min(12, len(columns))], values[:12]
		}
		s.Line("    ", fmt.Sprint(columns), values, "product", d.X.dot(i, w), "square", d.X.norm2(i))
	}
	s.Line("   error", d.Error(w))
	scaled, err := d.Normalize()
	if err != nil {
		s.Line("  ", err)
		return
	}
	_, width = scaled.X.Dims()
	s.Line("   normalized", width, scaled.X.stride, scaled.Labels[:])
	for i := range min(n, 6) {
		columns, values := scaled.X.Row(i)
		if len(values) > 12 {
			columns, values = columns[:min(12, len(columns))], values[len(values)-12:]
		}
		s.Line("    ", fmt.Sprint(columns), values)
	}
}

// wide is a row of n columns from a number on.
func wide(from, n int, separator string) string {
	words := make([]string, n)
	for j := range words {
		words[j] = fmt.Sprint(from + j)
	}
	return strings.Join(words, separator)
}

var csvFiles = []string{
	"1, \"2\"\n-1, \"3\"\n", "-inf,2\n1,3\n", "1,-inf\n-1,3\n", "label,a\n1,x\n", "1,2,x\n-1,3,4\n",
	"1e30,1\n2,2\n", "1e-7,1\n100000000000000000000000,2\n",
	"1,2,3\n-1,4,5\n", "label,a,b\n1,2,3\n-1,4,5\n", "\ufeff1, 2 ,3\n-1,4,5", "\ufefflabel,a\n2,1\n3,2\n",
	"1,a,3\n-1,4,5\n", "1,,b\n2,3,4\n", "no,1\nyes,2\nno,3\n", "a,1\nb,2\nc,3\n", "1,1\n1,2\n", "1\n2\n", "", "\n\n",
	"1,2\n",
	"1,2,3\n-1,4\n", "1,2\n-1,4,5\n", "1,2\nx\"y,3\n", "\"a\nb\",2\n-1,3\n", "1,2\n-1,x\n", "1,2,3\n-1,x,3\n",
	"1,2\n-1,nan\n",
	"1,2\n-1,inf\n", "1,2\n-1,\n", "1,2\n-1,1e999\n", ",2\n-1,3\n", "nan,2\n1,3\n", "inf,2\n1,3\n",
	"1,2\n+1.0,3\n1e0,4\n-2,5\n",
	"10,2\n9,3\n", "10,2\nx,3\n", "label,x\n", "\"1\",\"2\"\n\"-1\",\"3\"\n", "1,2\n\n-1,3\n", "1,\"2\n",
	"0.5,1\n.25,2\n", "x,1\nx,2\n",
	"1," + wide(0, 63, ",") + "\n-1," + wide(5, 63, ",") + "\n", "1," + wide(0, 65, ",") + "\n-1," + wide(5, 65,
		",") + "\n",
	"1," + wide(0, 64, ",") + "\n-1," + wide(5, 64, ",") + "\n",
}

var libsvmFiles = []string{
	"1 1048577:1\n-1 1048577:1\n", "1 1:1\n-1 3:1\n1 1048578:1 1048579:1\n1 1:1\n",
	"1 1:2 3:4\n-1 2:1\n", "1 1:2 # a comment 9:9\n# 1 1:1\n\n-1 2:1\n", "1\n-1 1:1\n", "1 2:0 3:1\n-1 1:5 2:0\n",
	"1 1:2 1:3\n",
	"1 2:2 1:3\n", "1 0:2\n", "1 -1:2\n", "1 x:2\n", "1 2\n", "1 2:\n", "1 2:x\n", "1 2:nan\n", "1 2:inf\n",
	"1 2147483648:1\n", "", "1\n-1\n", "1 1:1\n1 2:1\n",
	"a 1:1\nb 2:1\nc 1:1\n", "nan 1:1\n", "1 1048576:1\n-1 1:1\n", "1 1048577:1\n-1 1:1\n", "1 2147483647:1\n-1 1:1\n",
	"  1   1:1\t2:2  \n0 1:-1\n",
	"1 2:-0\n2 1:1e400\n", "0.5 1:1\n.25 2:-2\n", "1 1:1:1\n",
}

const arffHead = "% c\n@relation r\n@attribute a numeric\n@attribute 'b c' REAL\n@attribute class {no,yes}\n" +
	"@attribute d\t{u, 'v w'}\n@data\n"

var arffFiles = []string{
	"@attribute '' numeric\n@attribute y real\n@data\n1,2\n3,4\n",
	"@attribute {0,1}\n@attribute y real\n@data\n0,2\n1,4\n",
	arffHead + "\"1\",'2',\"yes\",\"v w\"\n3,4,no,u\n", arffHead + "1,\"2,yes,u\n",
	arffHead + "{2 \"yes\",3 'v w'}\n{0 '1'}\n",
	arffHead + "1,2,yes,u\n%\n\n3,4,no,'v w'\n", arffHead + "{0 1, 2 yes, 3 'v w'}\n{1 5}\n{ }\n{}\n",
	arffHead + "{0 1}\n1,2,no,u\n", arffHead + "1,2,no,u\n{0 1}\n",
	arffHead + "{0 1\n", arffHead + "{0 1, 0 2}\n", arffHead + "{3 u, 1 2}\n", arffHead + "{4 1}\n", arffHead + "{x 1}\n",
	arffHead + "{-1 1}\n", arffHead + "1,2,no\n",
	arffHead + "1,2,no,u,5\n", arffHead + "1,2,maybe,u\n1,2,no,u\n", arffHead + "1,2,maybe,u\n1,2,maybe,u\n",
	arffHead + "1,2,no,t\n", arffHead + "1,?,no,u\n", arffHead + "1,x,no,u\n", arffHead + "1,nan,no,u\n",
	arffHead + "1,'2,no,u\n", arffHead, arffHead + "1,2,no,u\n", "", "hello\n", "@relation r\n@data\n1\n",
	"@attribute a real\n@data\n1\n", "@attribute a string\n",
	"@attribute 'a numeric\n", "@attribute \"a b\" numeric\n@attribute y integer\n@data\n1,2\n3,4\n",
	"@attribute a{0,1}\n@attribute b {x}\n@data\n", "@attribute a{0,1}\n@attribute b {x,'y'}\n@data\n0,x\n1,y\n",
	"@attribute b {x,y,z}\n@attribute c real\n@data\n",
	"@attribute b {x,y,z}\n@attribute c real\n@attribute y real\n@data\n", "@attribute a {x,'y}\n", "@attribute a {x\n",
	"@attribute a x}\n", "@attribute\n", "@attribute a\n",
	"@attribute target real\n@attribute b real\n@attribute c real\n@data\n1,2,3\n-1,5,6\n{0 1}\n",
	"@attribute Target real\n@attribute b real\n@data\n{0 1, 1 2}\n{1 4}\n",
	"@attribute b real\n@attribute Y {p,q}\n@attribute c real\n@data\n{0 1, 2 2}\n{1 q}\n",
	"@attribute label real\n@attribute class {a,b}\n@data\n1,a\n2,b\n", "@foo bar\n",
	"@ATTRIBUTE a REAL\n@Attribute b Integer\n@DATA\n1,2\n2,3\n",
	"@attribute a real\n@attribute b real\n@data\n1, 2 , \n", "@attribute a real\n@attribute b real\n@data\n1,\n",
}

// Each text of a format gives the data, or an error that names the line, with either loss.
func TestGoldenTexts(t *testing.T) {
	for _, f := range []struct {
		name  string
		read  func(io.Reader, string, Loss) (*Data, error)
		texts []string
	}{{"csv", ReadCSV, csvFiles}, {"libsvm", ReadLIBSVM, libsvmFiles}, {"arff", ReadARFF, arffFiles}} {
		s := &golden.Script{}
		for _, text := range f.texts {
			for _, loss := range []Loss{Logistic, Squares} {
				s.Line(loss, fmt.Sprintf("%.200q", text))
				d, err := f.read(strings.NewReader(text), "f", loss)
				addData(s, d, err)
			}
			d, err := f.read(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(text))), "f", Logistic)
			s.Line("  broken off", d == nil, err)
		}
		golden.Numbers(t, f.name+".txt", s.String())
	}
}

// Memory for rows is bounded, to the byte.
func TestGoldenBudget(t *testing.T) {
	t.Cleanup(func() { freeMemory = func() int64 { return 0 } })
	s := &golden.Script{}
	head := "@attribute a real\n@attribute b {x,y}\n@data\n"
	for _, c := range []struct {
		read func(io.Reader, string, Loss) (*Data, error)
		text string
		need []int64 // bytes after which rows fit
	}{
		{ReadCSV, "1,2,3\n-1,4,5\n", []int64{48, 96}},
		{ReadLIBSVM, "1 1:2 3:4\n-1 2:0 5:1\n", []int64{56, 100}},
		{ReadARFF, head + "1,x\n2,y\n", []int64{70, 173, 229, 285}},
		{ReadARFF, head + "{0 1}\n{1 y}\n", []int64{173, 217, 261}},
	} {
		for _, need := range c.need {
			for _, free := range []int64{3*need - 1, 3 * need} {
				freeMemory = func() int64 { return free }
				d, err := c.read(strings.NewReader(c.text), "f", Logistic)
				s.Line(fmt.Sprintf("%q", c.text), free, d == nil, err)
			}
		}
	}
	freeMemory = func() int64 { return 0 }
	s.Line("unknown", newBudget().bytes, newBudget().left)
	for _, c := range []struct {
		columns int
		bytes   int64
	}{{1, 0}, {freeColumns, 3}, {freeColumns + 1, 3}, {freeColumns + 1, freeColumns},
		{freeColumns + 1, freeColumns + 1}} {
		s.Line("columns", c.columns, c.bytes, columnsError(c.columns, c.bytes))
	}
	for _, text := range []string{"", "'", "''", "'a'", "\"a\"", "'a\"", "a'", "\"", "x", "ab", "'ab", "\"\""} {
		s.Line("unquoted", fmt.Sprintf("%q", text), fmt.Sprintf("%q", unquoted(text)))
	}
	rows := &boundedRows{r: strings.NewReader("0123456789"), left: 5}
	for range 6 {
		n, err := rows.Read(make([]byte, 2))
		s.Line("read", n, rows.left, err)
	}
	rows.next()
	s.Line("next", fmt.Sprintf("%d bytes", rows.left-longestSplit))
	for _, long := range []int{longestSplit - 3, longestSplit - 1, longestSplit + 8} {
		row := "1," + strings.Repeat(" ", long-4) + "3\n"
		d, err := ReadCSV(strings.NewReader("-1,2\n"+row), "f", Logistic)
		s.Line("csv of a row of", len(row), d == nil, err)
		row = "1," + strings.Repeat(" ", long-4) + "x"
		d, err = ReadARFF(strings.NewReader(head+"2,y\n"+row), "f", Logistic)
		s.Line("arff of a row of", len(row), d == nil, err)
	}
	golden.Numbers(t, "budget.txt", s.String())
}

// An element of a MAT-file of level 5.
type variable struct {
	name    string
	class   uint32 // 6: double, 5: sparse, 4: characters
	flags   uint32 // 8: complex
	dims    []int32
	rows    []int32 // sparse
	columns []int32
	values  []float64
	imag    []float64
}

func (v variable) bytes() []byte {
	var body bytes.Buffer
	add := func(kind uint32, x any) {
		var b bytes.Buffer
		binary.Write(&b, binary.LittleEndian, x)
		binary.Write(&body, binary.LittleEndian, []uint32{kind, uint32(b.Len())})
		body.Write(b.Bytes())
		body.Write(make([]byte, -b.Len()&7))
	}
	add(6, []uint32{v.class | v.flags<<8, uint32(len(v.values))})
	add(5, v.dims)
	add(1, []byte(v.name))
	if v.class == 5 {
		add(5, v.rows)
		add(5, v.columns)
	}
	if v.class == 4 {
		add(16, []byte("text"))
	} else {
		add(9, v.values)
	}
	if v.imag != nil {
		add(9, v.imag)
	}
	var file bytes.Buffer
	binary.Write(&file, binary.LittleEndian, []uint32{14, uint32(body.Len())})
	file.Write(body.Bytes())
	return file.Bytes()
}

func full2(name string, rows, columns int32, values ...float64) variable {
	return variable{name: name, class: 6, dims: []int32{rows, columns}, values: values}
}

// MAT-files with targets of all names, places and shapes.
func TestGoldenMAT(t *testing.T) {
	s := &golden.Script{}
	x := full2("x", 3, 2, 1, 2, 3, 10, 20, 30)
	y := full2("t", 3, 1, 5, -2, 5)
	sparse := variable{name: "X", class: 5, dims: []int32{3, 4}, rows: []int32{0, 2, 1, 0},
		columns: []int32{0, 2, 2, 3, 4},
		values:  []float64{1, 2, 3, 4}}
	named := func(v variable, name string) variable { v.name = name; return v }
	complicated := func(v variable) variable { v.flags, v.imag = 8, make([]float64, len(v.values)); return v }
	column := variable{name: "y", class: 5, dims: []int32{3, 1}, rows: []int32{0, 2}, columns: []int32{0, 2},
		values: []float64{1, 2}}
	row := variable{name: "y", class: 5, dims: []int32{1, 3}, rows: []int32{0, 0}, columns: []int32{0, 1, 1, 2},
		values: []float64{1, 2}}
	big := make([]float64, 3*70)
	for i := range big {
		big[i] = float64(i)
	}
	text := variable{name: "note", class: 4, dims: []int32{1, 4}}
	dir := t.TempDir()
	header := "MATLAB 5.0 MAT-file" + strings.Repeat(" ", 105) + "\x00\x01IM"
	for i, vs := range [][]variable{
		{x, y}, {y, x}, {x, named(y, "other"), named(y, "GND")}, {x, y, named(y, "u")}, {x}, {x, full2("y", 2, 1, 1, -1)},
		{x, full2("y", 1, 2, 7, 3)}, {x, full2("y", 1, 3, 7, 3, 7)}, {x, full2("y", 4, 1, 1, 2, 3, 4)}, {sparse, y},
		{sparse, column}, {sparse, row}, {x, row},
		{sparse, full2("y", 4, 1, 1, 2, 1, 2)}, {complicated(x), y}, {x, complicated(y)}, {x, named(complicated(y), "y"), y},
		{full2("x", 2, 2, 1, math.NaN(), 3, 4), full2("y", 2, 1, 1, 2)},
		{full2("x", 2, 2, 1, math.Inf(1), 3, 4), full2("y", 2, 1, 1, 2)}, {x, full2("y", 3, 1, 1, math.NaN(), 2)},
		{x, full2("y", 3, 1, 1, 2, 3)}, {x, full2("y", 3, 1, 1, 1, 1)},
		{text, x, y}, {text}, {full2("empty", 0, 0)}, {full2("big", 3, 70, big...), y}, {full2("big", 70, 3, big...), y},
		{full2("v", 1, 3, 1, 2, 3)}, {x, full2("z", 2, 3, 1, 2, 3, 4, 5, 6), y},
		{x, full2("v", 9, 1, big[:9]...), full2("w", 9, 1, 1, 2, 1, 2, 1, 2, 1, 2, 1)}, {full2("s", 1, 1, 9), x, y},
		{variable{name: "cube", class: 6, dims: []int32{2, 2, 2}, values: big[:8]}, x, y},
		{full2("long", 9, 1, big[:9]...), x, y},
	} {
		var file []byte
		var names []string
		for _, v := range vs {
			file = append(file, v.bytes()...)
			names = append(names, v.name)
		}
		path := filepath.Join(dir, fmt.Sprint(i, ".mat"))
		if err := os.WriteFile(path, append([]byte(header), file...), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, loss := range []Loss{Logistic, Squares} {
			s.Line(i, fmt.Sprint(names), loss)
			d, err := ReadFile(path, loss)
			addData(s, d, err)
		}
		for _, ext := range []string{".labels", ".targets"} {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ext)), []byte("1\n-1\n\n1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d, err := ReadFile(path, Logistic)
		s.Line(i, "with labels beside it")
		addData(s, d, err)
	}
	a := &mat.Array{Class: mat.Sparse, Dims: []int{2, 3}, Rows: []int{1, 0}, Columns: []int{0, 1, 1, 2},
		Real: []float64{5, 6}}
	s.Line("elements", elements(a))
	golden.Numbers(t, "mat.txt", strings.ReplaceAll(s.String(), dir, "DIR"))
}

// ReadFile by content and name, the files of labels, and the NIPS format.
func TestGoldenReadFile(t *testing.T) {
	s := &golden.Script{}
	dir := t.TempDir()
	write := func(name, text string) {
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write([]byte(text))
			z.Close()
			text = b.String()
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []struct{ name, text, labels string }{
		{"a.csv", "1,2\n-1,3\n", ""}, {"b.csv.gz", "1,2\n-1,3\n", ""}, {"c.txt", "\r\n\n1 1:2\n-1 2:3\n", ""},
		{"d.csv", "", ""}, {"e.data", "1,2\n-1,3\n", ""},
		{"f.data", "1 2\n3 4\n", "1\n-1\n"}, {"g.data", "1 2\n3 4\n", "1\n\n -1 \n\n"}, {"h.data", "1 2\n3 4\n", "1\n"},
		{"i.data", "1 2\n3 4\n", "1\n-1\n1\n"},
		{"j.data", "1 2\n3 4\n", "1\n2\n3\n"}, {"k.data", "1 2\n3 4\n", "1\nnan\n"}, {"l.data", "1 2\n3 4\n", ""},
		{"m.data", "1:2 3:4\n2:1\n\n", "1\n-1\n-1\n"}, {"n.data", "1:2 1:4\n", "1\n"},
		{"o.data", "1:2 0:4\n", "1\n"}, {"p.data", "0:2\n", "1\n"}, {"q.data", "1:2 x:4\n", "1\n"},
		{"r.data", "1:2 3\n", "1\n"}, {"s.data", "1:2 2:x\n", "1\n"}, {"t.data", "1:2 2147483648:1\n", "1\n"},
		{"u.data", "1:2 2147483647:1\n", "1\n"}, {"v.data", "1 3\n2 3 4\n\n", "1\n-1\n1\n"},
		{"w.data", "1 3\n2\n0 1 2\n", "1\n-1\n1\n"}, {"x.data", "1 3\n2\n2 2 3\n", "1\n-1\n1\n"},
		{"y.data", "1 3\n2.5\n", "1\n-1\n"},
		{"z.data", "1 3\n2 x\n", "1\n-1\n"}, {"A.data", "1 3\n2000000000\n", "1\n-1\n"}, {"B.data", "\n\n", ""},
		{"C.data", "1 3\n4 5 6\n3 1\n", "1\n-1\n1\n"}, {"D.data.gz", "1 2\n3 4\n", "1\n-1\n"},
		{"E.arff", "% x\n@attribute a real\n@attribute b real\n@data\n1,2\n2,3\n", ""},
		{"F.arff", "@attribute a real\n@attribute b real\n@data\n1,2\n2,3\n", ""}, {"G.txt", "1 2 3\n", ""},
		{"H.txt", "1;2;3\n", ""}, {"I.txt", "1|2\n", ""},
		{"J.txt", "1\t2\n", ""}, {"K.txt", "12\n", ""}, {"L.txt", "1 a:2,3\n", ""}, {"M.bin", "ab\x00", ""},
		{"N.bz2", "BZh9", ""}, {"O.xz", "\xfd7zXZ\x00", ""}, {"P.zst", "\x28\xb5\x2f\xfd\x00", ""},
		{"Q.zip", "PK\x03\x04", ""},
		{"R.npy", "\x93NUMPY", ""}, {"S.parquet", "PAR1", ""}, {"T.mat", "\x89HDF", ""}, {"U.mat", "MATLAB 5.0", ""},
		{"V.txt", "\x1f\x8b", ""}, {"W.txt", "\x1f\x8b\x08\x00", ""}, {"X.data", "1 2\n3 4\n", "a\nb\n"},
		{"Y.data", wide(0, 70, " ") + "\n" + wide(9, 70, " ") + "\n", "1\n-1\n"},
		{"Z.data", "1:2 1048577:1\n1:1\n", "1\n-1\n"}, {"0.data", "1\n1 1048577\n", "1\n-1\n"},
		{"1.data", " \n1 2\n\n3 4\n", "1\n-1\n1\n"},
		{"a1.csv", "\ufeff1,2\n-1,3\n", ""}, {"a2.csv.gz", "\ufefflabel,a\n1,2\n-1,3\n", ""},
		{"a3.svm", "\ufeff1 1:2\n-1 2:3\n", ""}, {"a4.arff", "\ufeff@attribute a real\n@attribute b real\n@data\n1,2\n2,3\n",
			""},
		{"a5.data", "\ufeff1 2\n3 4\n", "\ufeff1\n-1\n"}, {"a6.csv", "\ufeff", ""},
		{"a7.data", "1 2\n3 4\n", "1\n" + strings.Repeat("2", 70000) + "\n"},
	} {
		write(f.name, f.text)
		if f.labels != "" {
			base, _, _ := strings.Cut(f.name, ".")
			write(base+".labels", f.labels)
		}
		for _, loss := range []Loss{Logistic, Squares} {
			s.Line(loss, f.name, fmt.Sprintf("%.80q", f.text), fmt.Sprintf("%.40q", f.labels))
			d, err := ReadFile(filepath.Join(dir, f.name), loss)
			addData(s, d, err)
		}
	}
	write("two.data", "1 2\n3 4\n")
	write("two.targets.gz", "3\n4\n")
	for range 2 {
		d, err := ReadFile(filepath.Join(dir, "two.data"), Logistic)
		s.Line("labels of another name")
		addData(s, d, err)
		write("two.labels.gz", "9\n8\n")
	}
	_, err := ReadFile(filepath.Join(dir, "missing"), Logistic)
	s.Line(err != nil)
	for _, name := range []string{"dense.mat", "compressed.mat", "sparse.mat", "columns.mat", "sparsecolumns.mat",
		"alone.mat",
		"rows.data", "zipped.data.gz", "pairs.data"} {
		d, err := ReadFile("testdata/formats/"+name, Logistic)
		s.Line(name)
		addData(s, d, err)
	}
	sonar, err := Sonar()
	s.Line("sonar")
	addData(s, sonar, err)
	golden.Numbers(t, "files.txt", strings.ReplaceAll(s.String(), dir, "DIR"))
}

// Rows, labels and errors of matrices, valid or not.
func TestGoldenMatrix(t *testing.T) {
	s := &golden.Script{}
	for _, c := range [][3]int{{0, 1, 0}, {1, 0, 0}, {1, 1, 0}, {1, 1, 1}, {2, 3, 6}, {2, 3, 5}, {-1, -1, 1}} {
		m, err := NewDense(c[0], c[1], make([]float64, c[2]))
		s.Line("dense", fmt.Sprint(c), m != nil, err)
	}
	for _, c := range []struct {
		n, d   int
		start  []int
		index  []int32
		values []float64
	}{
		{2, 3, []int{0, 2, 3}, []int32{0, 2, 1}, []float64{1, 2, 3}}, {0, 3, []int{0}, nil, nil},
		{1, 0, []int{0, 0}, nil, nil},
		{1, 1, []int{0, 0}, nil, nil}, {2, 3, []int{0, 2}, []int32{0, 2}, []float64{1, 2}},
		{1, 3, []int{0, 2}, []int32{0}, []float64{1, 2}},
		{1, 3, []int{1, 2}, []int32{0, 1}, []float64{1, 2}}, {1, 3, []int{0, 1}, []int32{0, 1}, []float64{1, 2}},
		{2, 3, []int{0, 3, 2}, []int32{0, 1}, []float64{1, 2}},
		{1, 3, []int{0, 2}, []int32{1, 1}, []float64{1, 2}}, {1, 3, []int{0, 2}, []int32{2, 1}, []float64{1, 2}},
		{1, 3, []int{0, 1}, []int32{3}, []float64{1}}, {1, 3, []int{0, 1}, []int32{-1}, []float64{1}},
		{1, 3, []int{0, 1}, []int32{2}, []float64{1}}, {2, 2, []int{0, 1, 2}, []int32{1, 0}, []float64{1, 2}},
		{1, 9, []int{0, 9}, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}},
	} {
		m, err := NewSparse(c.n, c.d, c.start, c.index, c.values)
		s.Line("sparse", c.n, c.d, c.start, fmt.Sprint(c.index), c.values, err)
		if m == nil {
			continue
		}
		w, to := make([]float64, c.d), make([]float64, c.d)
		for j := range w {
			w[j], to[j] = float64(j+1), 1
		}
		for i := range c.n {
			m.add(to, float64(i)+.5, i)
			s.Line("  row", i, m.dot(i, w), m.norm2(i), to)
		}
		s.Line(" ", m.NonZeros(), m.MaxRowNorm(), m.Norm2())
	}
	for d := 61; d < 74; d++ {
		s.Line("padded", d, padded(d))
	}
	for _, text := range []string{"", "1", "-1.5e3", "1e400", "nan", "inf", "x", "0x10", "1_0"} {
		v, err := number(text)
		s.Line("number", fmt.Sprintf("%q", text), v, err)
	}
	for _, loss := range []Loss{Logistic, Squares, Loss(7)} {
		s.Line(loss, loss.curvature())
		for _, z := range []float64{0, .5, -2, 40, -1000} {
			for _, y := range []float64{1, -1} {
				value, slope := loss.both(z, y)
				s.Line("  at", z, y, golden.Rough(loss.value(z, y), 1e-12), golden.Rough(value, 1e-12), golden.Rough(slope, 1e-12),
					golden.Rough(loss.slope(z, y), 1e-12), golden.Rough(loss.bend(z), 1e-12))
			}
		}
	}
	for _, e := range []error{&FileError{"f", 0, io.EOF}, &FileError{"f", 3, io.EOF}} {
		s.Line(e)
	}
	s.Line(fmt.Sprint(Published(true)), fmt.Sprint(Published(false)), fmt.Sprint(Deterministic()),
		fmt.Sprint(Stochastic()))
	golden.Numbers(t, "matrix.txt", s.String())
}
