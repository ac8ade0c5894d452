package convex

import (
	"errors"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
)

func TestReadCSV(t *testing.T) {
	for name, text := range map[string]string{
		"header":    "y,a,b\n1,2,3\n-1,4,5\n",
		"no header": "1,2,3\n-1,4,5",
		"names":     "rock, 2 ,3\r\nmine,4,5\r\n",
		"numbers":   "\ufeff7,2,3\n\n2.0,4,5\n",
		"quoted":    "\"y\",\"a, b\",c\n+1,2,3\n-1.0,4,5\n",
	} {
		d, err := ReadCSV(strings.NewReader(text), name, Logistic)
		if err != nil {
			t.Error(err)
			continue
		}
		if !floats.Equal(d.Y, []float64{1, -1}) || !floats.Equal(d.X.values, []float64{2, 3, 4, 5}) || d.X.d != 2 {
			t.Errorf("%s: %v, %v", name, d.Y, d.X)
		}
	}
	d, err := ReadCSV(strings.NewReader("0.5,1\n2,3\n-7e1,1\n"), "targets", Squares)
	if err != nil || !floats.Equal(d.Y, []float64{0.5, 2, -70}) {
		t.Errorf("%v, %v", d, err)
	}
}

func TestReadLIBSVM(t *testing.T) {
	d, err := ReadLIBSVM(strings.NewReader("1 1:-1 2:0 4:3\n-1 3:-2\n"), "f", Logistic)
	if err != nil {
		t.Fatal(err)
	}
	if d.X.NonZeros() != 3 || d.X.dot(0, []float64{1, 10, 100, 1000}) != 2999 ||
		d.X.dot(1, []float64{1, 10, 100, 1000}) != -200 {
		t.Errorf("%+v", d.X)
	}
	d, err = ReadLIBSVM(strings.NewReader("+1 1:2 3:4 # a comment\n\n-1 2:5\n-1\n"), "f", Logistic)
	if err != nil {
		t.Fatal(err)
	}
	if n, dim := d.X.Dims(); n != 3 || dim != 3 || d.X.NonZeros() != 3 {
		t.Errorf("%d×%d with %d values", n, dim, d.X.NonZeros())
	}
	if !floats.Equal(d.Y, []float64{1, -1, -1}) || d.X.dot(0, []float64{1, 10, 100}) != 402 ||
		d.X.dot(1, []float64{1, 10, 100}) != 50 {
		t.Errorf("%v, %v", d.Y, d.X)
	}
}

func TestBadFiles(t *testing.T) {
	for _, c := range []struct {
		read func(string) error
		text string
		want string
	}{
		{readCSV, "", "f: no rows"},
		{readCSV, "y,a\n", "f: no rows"},
		{readCSV, "1\n", "f:1: one column only"},
		{readCSV, "1,2,3\n-1,2\n", "f:2: 2 columns, where the first line has 3"},
		{readCSV, "1,2\n\n-1,x\n", `f:3: column 2 "x" is no number`},
		{readCSV, "1,2\n-1,NaN\n", "f:2: column 2 is NaN"},
		{readCSV, "1,2\n-1,\n", "f:2: column 2 is empty"},
		{readCSV, "1,2\n-1,1e999\n", "f:2: column 2"},
		{readCSV, "1,2\n1,3\n", "f: one class only"},
		{readCSV, "1,2\n-1,3\n0,4\n", `f:3: a third label, "0", after "1" and "-1"`},
		{readCSV, "nan,2\n1,3\n", "f:1: label is nan"},
		{readCSV, "inf,2\n1,3\n", "f:1: label is inf"},
		{readCSV, "1,2\n-inf,3\n", "f:2: label is -inf"},
		{readCSV, "1,2\n,3\n", "f:2: the label is empty"},
		{readCSV, "1,\"2\n-1,3\n", "f:"},
		{readLIBSVM, "1 1:2\n-1 0:3\n", `f:2: column "0"`},
		{readLIBSVM, "1 1:2\n-1 2:3 1:3\n", "f:2: column 1 after column 2"},
		{readLIBSVM, "1 1:2\n-1 x\n", `f:2: "x" is not column:value`},
		{readLIBSVM, "1 1:2\n-1 2:inf\n", "f:2: column 2 is inf"},
		{readLIBSVM, "1 1:2\n", "f: one class only"},
		{readLIBSVM, "# nothing\n", "f: no rows"},
	} {
		err := c.read(c.text)
		var bad *FileError
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s…", c.text, err, c.want)
		}
	}
}

func readCSV(s string) error { _, err := ReadCSV(strings.NewReader(s), "f", Logistic); return err }
func readLIBSVM(s string) error {
	_, err := ReadLIBSVM(strings.NewReader(s), "f", Logistic)
	return err
}

func TestNormalize(t *testing.T) {
	d, err := ReadCSV(strings.NewReader("1,2,5,-1\n-1,4,5,3\n-1,3,5,1\n"), "f", Logistic)
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{0, 0, 0, 1, 1, 0, 1, 1, 0.5, 0, 0.5, 1}; !floats.Equal(got.X.values, want) {
		t.Errorf("%v, want %v", got.X.values, want)
	}
	s, err := ReadLIBSVM(strings.NewReader("1 1:2 3:4\n-1 1:4\n"), "f", Logistic)
	if err != nil {
		t.Fatal(err)
	}
	if got, err = s.Normalize(); err != nil {
		t.Fatal(err)
	}
	if got.X.NonZeros() != 5 || got.X.dot(0, []float64{1, 10, 100, 1000}) != 1100.5 ||
		got.X.dot(1, []float64{1, 10, 100, 1000}) != 1001 {
		t.Errorf("%+v", got.X)
	}
	if s, err = ReadLIBSVM(strings.NewReader("1 1:-2\n-1 1:4\n"), "f", Logistic); err != nil {
		t.Fatal(err)
	}
	if _, err = s.Normalize(); err == nil {
		t.Error("a negative feature of sparse data was scaled")
	}
}

func TestSonar(t *testing.T) {
	d, err := Sonar()
	if err != nil {
		t.Fatal(err)
	}
	positive := 0
	for i, y := range d.Y {
		if y == 1 {
			positive++
		}
		_, x := d.X.Row(i)
		if x[60] != 1 || floats.Min(x) < 0 || floats.Max(x) > 1 {
			t.Errorf("row %d: %v", i, x)
		}
	}
	if n, dim := d.X.Dims(); n != 208 || dim != 61 || positive != 97 {
		t.Errorf("%d×%d, %d rocks", n, dim, positive)
	}
	if e := d.Error(make([]float64, 61)); e != 97./208 {
		t.Errorf("the error of w = 0 is %v", e)
	}
}

func FuzzReadLIBSVM(f *testing.F) {
	for _, s := range []string{"1 1:2\n-1 2:3", "a 1:1\nb 2147483647:1", "1 1:nan", "0 1:0\n1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ReadLIBSVM(strings.NewReader(s), "f", Logistic)
		if err != nil {
			return
		}
		for i, y := range d.Y {
			if y != 1 && y != -1 {
				t.Errorf("target %v", y)
			}
			if _, x := d.X.Row(i); floats.HasNaN(x) || math.IsInf(floats.Norm(x, math.Inf(1)), 0) {
				t.Errorf("row %v", x)
			}
		}
	})
}
