package main

import (
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/internal/testdata"
	"onlinerna/rna/convex"
	"onlinerna/rna/convex/study"
)

func readAll(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestLogreg(t *testing.T) {
	dir := t.TempDir()
	curves, plot := filepath.Join(dir, "curves.csv"), filepath.Join(dir, "plot.svg")
	out := mustRun(t, "logreg", "--iterations", "20", "--csv", curves, "--plot", plot)
	for _, want := range []string{"sonar: 208 rows of 61 features", "f* = 0.11528307082572", "online_rna_gd", "lbfgs"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	rows := readAll(t, curves)
	if len(rows) != 1+10*21 || strings.Join(rows[0], ",") != "method,iteration,f_minus_fstar" ||
		strings.Join(rows[21][:2], ",") != "gd,20" {
		t.Errorf("%d rows: %v, %v", len(rows), rows[0], rows[min(21, len(rows)-1)])
	}
	if svg, err := os.ReadFile(plot); err != nil || !strings.Contains(string(svg), "Online RNA + gradient") {
		t.Errorf("figure of %d bytes, %v", len(svg), err)
	}
	mustRun(t, "logreg", "--stochastic", "--iterations", "10", "--methods", "all", "--csv", curves)
	if rows := readAll(t, curves); rows[0][1] != "epoch" {
		t.Errorf("header %v", rows[0])
	}
	for ext, magic := range map[string]string{"svg": "<?xml", "png": "\x89PNG", "pdf": "%PDF-"} {
		plot := filepath.Join(dir, "anderson."+ext)
		mustRun(t, "logreg", "--anderson", "--iterations", "10", "--cond", "well", "--plot", plot)
		if b, err := os.ReadFile(plot); err != nil || !strings.HasPrefix(string(b), magic) {
			t.Errorf("%s begins with %.8q, %v", plot, b, err)
		}
	}
}

func TestLogregFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	table := write("table.csv", "label,a,b\nyes,1,200\nno,2,100\nyes,2,300\nno,0,50\n")
	mustRun(t, "logreg", "--data", table, "--normalize", "--kappa", "1e-2", "--iterations", "5")
	mustRun(t, "logreg", "--data", write("sparse.txt", "+1 1:1\n-1 2:1 3:2\n"), "--reg", "0.1", "--iterations", "5",
		"--loss", "squares")
	for path, want := range map[string]string{
		write("nan.csv", "1,2\n-1,nan\n"):     "nan.csv:2: column 2 is nan",
		write("large.csv", "1,1\n-1,1e400"):   "large.csv:2: column 2 1e400 is beyond",
		write("huge.csv", "1,1e200\n-1,1\n"):  "huge.csv: features so large",
		write("zeros.csv", "1,0\n-1,0\n"):     "zeros.csv: all features are 0",
		write("nan.txt", "1 1:1\n-1 2:nan\n"): "nan.txt:2: column 2 is nan",
		write("order.txt", "1 2:1 1:1\n"):     "order.txt:1: column 1 after column 2",
		write("ragged.csv", "1,2,3\n-1,2\n"):  "ragged.csv:2: 2 columns",
		write("text.csv", "1,2\n-1,x\n"):      `text.csv:2: column 2 "x" is no number; the label is the first column`,
		write("class.csv", "1,2\n1,3\n"):      `class.csv: one class only, "1" in all 2 rows`,
		write("third.csv", "1,2\n-1,3\n2,3"):  "third.csv:3: a third label",
		filepath.Join(dir, "is-missing.csv"):  "is-missing.csv",
	} {
		status, _, err := runRNA(t, "logreg", "--data", path)
		if status != 1 || !strings.Contains(err, want) {
			t.Errorf("%s: status %d, %s", path, status, err)
		}
	}
	figures := filepath.Join(dir, "figures")
	mustRun(t, "logreg", "--data", table, "--normalize", "--iterations", "5", "--all-figures", figures)
	for _, name := range []string{"deterministic-well.svg", "stochastic-bad.csv", "anderson-regular.svg"} {
		if _, err := os.Stat(filepath.Join(figures, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestLogregDigits(t *testing.T) {
	digits := testdata.Shared(t, "data/mnist")
	curves := filepath.Join(t.TempDir(), "curves.csv")
	out := mustRun(t, "logreg", "--data", digits, "--digit", "9", "--methods", "gd,online_rna_gd", "--iterations", "3",
		"--csv", curves)
	if !strings.Contains(out, "9 against all: 8000 rows of 785 features") || !strings.Contains(out, "VALIDATION ERROR") {
		t.Error(out)
	}
	if rows := readAll(t, curves); len(rows[0]) != 4 || rows[0][3] != "validation_error" || len(rows) != 9 {
		t.Errorf("%d rows, %v", len(rows), rows[0])
	}
}

// A generated pair of IDX files: images whose left half is bright are of class 1, others of class 0.
func TestLogregIDX(t *testing.T) {
	dir := t.TempDir()
	for _, set := range []struct {
		prefix string
		n      int
	}{{"train", 60}, {"t10k", 20}} {
		images := []byte{0, 0, 8, 3, 0, 0, 0, byte(set.n), 0, 0, 0, 4, 0, 0, 0, 4}
		labels := []byte{0, 0, 8, 1, 0, 0, 0, byte(set.n)}
		for i := range set.n {
			bright := i % 2
			labels = append(labels, byte(bright))
			for p := range 16 {
				v := byte((7*i + 13*p) % 50)
				if (p%4 < 2) == (bright == 1) {
					v += 150
				}
				images = append(images, v)
			}
		}
		for name, b := range map[string][]byte{"-images-idx3-ubyte": images, "-labels-idx1-ubyte": labels} {
			if err := os.WriteFile(filepath.Join(dir, set.prefix+name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	figures := filepath.Join(dir, "figures")
	out := mustRun(t, "logreg", "--data", dir, "--digit", "1", "--iterations", "50", "--all-figures", figures)
	if !strings.Contains(out, "1 against all: 60 rows of 17 features") || !strings.Contains(out, "VALIDATION ERROR") {
		t.Error(out)
	}
	rows := readAll(t, filepath.Join(figures, "digit-1.csv"))
	if len(rows) != 1+10*51 || strings.Join(rows[0], ",") != "method,iteration,f_minus_fstar,validation_error" {
		t.Fatalf("%d rows: %v", len(rows), rows[0])
	}
	// At w = 0 all are predicted as the others: half are wrong. The halves are easy to distinguish.
	for _, r := range rows[1:] {
		if r[1] == "0" && r[3] != "50" || r[1] == "50" && r[3] != "0" {
			t.Errorf("validation error of %v", r)
		}
	}
	if svg, err := os.ReadFile(filepath.Join(figures, "digit-1.svg")); err != nil || !strings.Contains(string(svg),
		"validation error, %") {
		t.Errorf("figure of %d bytes, %v", len(svg), err)
	}
	mustRun(t, "logreg", "--data", filepath.Join(dir, "train-images-idx3-ubyte"), "--digit", "0", "--iterations", "2",
		"--stochastic")
	if status, _, err := runRNA(t, "logreg", "--data", dir, "--digit", "2"); status != 1 || !strings.Contains(err,
		"--digit is 2") {
		t.Errorf("status %d, %s", status, err)
	}
}

// A diverging run is reported; the others continue, and their curves are written.
func TestLogregDivergence(t *testing.T) {
	curves := filepath.Join(t.TempDir(), "curves.csv")
	status, out, err := runRNA(t, "logreg", "--loss", "squares", "--kappa", "1e-15", "--methods", "nesterov_strong,gd",
		"--iterations", "30000", "--csv", curves)
	if status != 0 || !strings.Contains(err, "nesterov_strong diverged") || !strings.Contains(err, "after iteration") {
		t.Errorf("status %d, %s", status, err)
	}
	if !strings.Contains(out, "gd ") {
		t.Error(out)
	}
	if rows := readAll(t, curves); rows[len(rows)-1][0] != "gd" || rows[len(rows)-1][1] != "30000" {
		t.Errorf("curves end with %v", rows[len(rows)-1])
	}
	if status, _, err := runRNA(t, "logreg", "--methods", "gd", "--csv", filepath.Join(curves, "x.csv")); status != 2 ||
		!strings.Contains(err, "cannot be written") {
		t.Errorf("status %d, %s", status, err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestLogregUnwritten(t *testing.T) {
	var stderr strings.Builder
	if status := run(t.Context(), []string{"logreg", "--methods", "gd", "--iterations", "3"}, fullDisk{},
		&stderr); status != 1 || !strings.Contains(stderr.String(), "no space") {
		t.Errorf("status %d, %q", status, stderr.String())
	}
}

func TestLogregMistakes(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--cond good", "unknown --cond"},
		{"--loss hinge", "unknown --loss"},
		{"--methods online_rna_g", "did you mean online_rna_gd?"},
		{"--stochastic --methods gd", "unknown method"},
		{"--kappa 1 --reg 1", "more than one of"},
		{"--cond bad --reg 1", "more than one of"},
		{"--normalize", "scaled already"},
		{"--digit 3", "for images"},
		{"--seed 3", "--stochastic"},
		{"--kappa -1", "above 0"},
		{"--window 0", "--window"},
		{"--lambda -1", "--lambda"},
		{"--anderson --stochastic", "--anderson"},
		{"--all-figures x --csv y", "--all-figures"},
	} {
		status, _, err := runRNA(t, append([]string{"logreg"}, strings.Fields(c.args)...)...)
		if status != 2 || !strings.Contains(err, c.want) {
			t.Errorf("%s: status %d, %s", c.args, status, err)
		}
	}
}

// One digit against all others, on real digits: for each digit, online RNA ends at a lower risk than Nesterov's method,
// and that at a lower one than gradient descent. The validation error falls to a few per cent with all of them, but on
// eight digits online RNA's exceeds that of gradient descent.
func TestDigitRanking(t *testing.T) {
	digits := testdata.Shared(t, "data/mnist")
	if testing.Short() {
		t.Skip("ten digits take seconds")
	}
	above := 0
	for digit := range 10 {
		train, val, err := loadImages(digits, digit)
		if err != nil {
			t.Fatal(err)
		}
		risk, err := convex.NewRisk(train, convex.Logistic)
		if err != nil {
			t.Fatal(err)
		}
		risk.Reg = study.Regularisation(risk, "regular", false)
		problem, err := risk.Problem()
		if err != nil {
			t.Fatal(err)
		}
		var ends, errors []float64
		for _, m := range study.Digits() {
			res, err := convex.Minimize(problem, m, convex.Options{Iterations: 100})
			if err != nil {
				t.Fatal(err)
			}
			ends, errors = append(ends, res.Values[100]), append(errors, val.Error(res.W))
			if wrong := val.Error(res.W); !(wrong < 0.06 && wrong < val.Error(make([]float64, problem.Dim))) {
				t.Errorf("digit %d, %s: validation error %.2f %%", digit, m, 100*wrong)
			}
		}
		if !(ends[2] < ends[1] && ends[1] < ends[0]) {
			t.Errorf("digit %d: %v end at %.4g", digit, study.Digits(), ends)
		}
		if errors[2] > errors[0] {
			above++
		}
	}
	if above != 8 {
		t.Errorf("online RNA has a higher validation error than gradient descent on %d digits", above)
	}
}
