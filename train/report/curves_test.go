package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/rna/convex/figure"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/replay"
)

// demoReplay has each kind of curve, with points that are missing, rejected or scored on held-out images.
func demoReplay() Replay {
	beta, lambda := .5, 1e-3
	held, fit := score(31, .7), .0125
	return Replay{train.Spec{Epochs: 2, Model: "lenet"}, &replay.Result{Epochs: []int{1, 2}, Curves: []*replay.Curve{
		{Name: "SGD", Kind: network.SGD, Points: []replay.Point{{Epoch: 1, Val: score(30, .5)}, {Epoch: 2, Val: score(20, .4),
			Held: held}}},
		{Name: "RNA of 2, lambda auto", Kind: network.RNA, Window: 2, Lambda: "auto", Beta: &beta, Points: []replay.Point{
			{Epoch: 1, Val: score(18, .3), C: []float64{.25, .75}, NormC: .75, Lambda: &lambda, Choice: "extrapolated"},
			{Epoch: 2, Status: "rank deficient"}}},
		{Name: "average of 2", Kind: network.Average, Last: 2, Points: []replay.Point{{Epoch: 2, Val: score(19.5, .35)}}},
		{Name: "EMA 0.75", Kind: network.EMA, Decay: .75, Points: []replay.Point{{Epoch: 1, Val: score(21, .6)},
			{Epoch: 2, Val: score(22, .6)}}},
		{Name: "WSM linear of 2 epochs", Kind: network.EMA, WSM: "linear:2", Points: []replay.Point{{Epoch: 2,
			Val: score(17, .25), Fit: &fit}}},
		{Name: "power EMA, γ = 8", Kind: network.EMA, Gamma: 8},
	}}}
}

func TestReplayTable(t *testing.T) {
	var b bytes.Buffer
	if err := demoReplay().Table(&b); err != nil {
		t.Fatal(err)
	}
	want := `
    validation, error in %  epoch 2    loss  to the first  lowest  in epoch
 1  SGD                       20.00  0.4000                 20.00         2
 2  RNA of 2, lambda auto         -       -                 18.00         1
 3  average of 2              19.50  0.3500         -0.50   19.50         2
 4  EMA 0.75                  22.00  0.6000         +2.00   21.00         1
 5  WSM linear of 2 epochs    17.00  0.2500         -3.00   17.00         2
 6  power EMA, γ = 8              -       -                     -

epoch      1      2      3      4      5  6
1      30.00  18.00      -  21.00      -  -
2      20.00      -  19.50  22.00  17.00  -

An error measured on 2500 images has a standard error of 0.80 points.
RNA of 2, lambda auto, epoch 2: rank deficient
WSM linear of 2 epochs, epoch 2: the fit is off by 1.2 % of the profile's norm
`
	if got := "\n" + b.String(); got != want {
		t.Errorf("table\n%s\nwant\n%s", got, want)
	}
	// Without validation images the held-out ones are used.
	r := demoReplay()
	for _, c := range r.Curves {
		for i := range c.Points {
			c.Points[i].Val = nil
		}
	}
	b.Reset()
	if err := r.Table(&b); err != nil || !strings.Contains(b.String(), "held-out, error in %") ||
		!strings.Contains(b.String(), "31.00") {
		t.Errorf("%v\n%s", err, &b)
	}
}

func TestReplayCSV(t *testing.T) {
	var b bytes.Buffer
	if err := demoReplay().CSV(&b); err != nil {
		t.Fatal(err)
	}
	want := `
epoch,weights,kind,window,lambda_rule,beta,snapshots,decay,lambda,c_norm,choice,status,val_loss,val_top1,val_top5,held_loss,held_top1,held_top5,gamma,wsm,fit
1,SGD,sgd,,,,,,,,,,0.5,70,99,,,,,,
2,SGD,sgd,,,,,,,,,,0.4,80,99,0.7,69,99,,,
1,"RNA of 2, lambda auto",rna,2,auto,0.5,,,0.001,0.75,extrapolated,,0.3,82,99,,,,,,
2,"RNA of 2, lambda auto",rna,2,auto,0.5,,,,,,rank deficient,,,,,,,,,
2,average of 2,average,,,,2,,,,,,0.35,80.5,99,,,,,,
1,EMA 0.75,ema,,,,,0.75,,,,,0.6,79,99,,,,,,
2,EMA 0.75,ema,,,,,0.75,,,,,0.6,78,99,,,,,,
2,WSM linear of 2 epochs,ema,,,,,,,,,,0.25,83,99,,,,,linear:2,0.0125
`
	if got := "\n" + b.String(); got != want {
		t.Errorf("lines\n%s\nwant\n%s", got, want)
	}
}

// A CSV has the numbers of the run's task.
func TestReplayCSVOfTasks(t *testing.T) {
	for task, want := range map[data.Task]string{
		data.MultiLabel: "status,val_loss,val_map,held_loss,held_map,gamma,wsm,fit\n1,SGD,sgd,,,,,,,,,,0.5,70,,,,,\n",
		data.Regression: "status,val_loss,val_rmse,val_mae,val_r2,held_loss,held_rmse,held_mae,held_r2,gamma,wsm,fit\n" +
			"1,SGD,sgd,,,,,,,,,,0.5,2,1.5,,,,,,,,\n",
	} {
		s := &network.Score{Task: task, Loss: .5, Images: 9, MAP: 70, RMSE: 2, MAE: 1.5, R2: math.NaN()}
		r := Replay{train.Spec{Task: task}, &replay.Result{Epochs: []int{1}, Curves: []*replay.Curve{
			{Name: "SGD", Kind: network.SGD, Points: []replay.Point{{Epoch: 1, Val: s}}}}}}
		var b bytes.Buffer
		if err := r.CSV(&b); err != nil || !strings.HasSuffix(b.String(), want) {
			t.Errorf("%s: %v\n%s\nwant …%s", task, err, &b, want)
		}
	}
}

// demoStudy has distinct errors for each curve, and an online run without RNA in its first epoch.
func demoStudy() Study {
	d, n := .125, .25
	return Study{train.Spec{Epochs: 2, Model: "lenet"},
		[]hook.EpochRecord{{Epoch: 1, Rate: .1, SGD: score(50, 1)},
			{Epoch: 2, Rate: .05, SGD: score(40, 1), RNA: &hook.RNARecord{Score: score(30, 1), Distance: &d, NoiseDistance: &n,
				Noise: .875}}},
		[]hook.EpochRecord{{Epoch: 1, Rate: .1, SGD: score(51, 1)},
			{Epoch: 2, Rate: .05, SGD: score(41, 1), RNA: &hook.RNARecord{Score: score(35, 1)}}}}
}

func TestStudyTable(t *testing.T) {
	var b bytes.Buffer
	if err := demoStudy().Table(&b); err != nil {
		t.Fatal(err)
	}
	want := `
epoch  rate  standard %  offline RNA %  online RNA %  ‖c − 1/N‖  of noise alone  noise
1       0.1       50.00              -         51.00          -               -      -
2      0.05       40.00          30.00         35.00      0.125           0.250   88 %
`
	if got := "\n" + b.String(); got != want {
		t.Errorf("table\n%s\nwant\n%s", got, want)
	}
}

// The study's figure has each run's errors under its own name, and both distances.
func TestStudyPanels(t *testing.T) {
	panels, err := demoStudy().panels()
	if err != nil || len(panels) != 2 {
		t.Fatal(panels, err)
	}
	check := func(p figure.Panel, want map[string][2][]float64) {
		t.Helper()
		if len(p.Curves) != len(want) {
			t.Errorf("%s: %d curves", p.Y, len(p.Curves))
		}
		for _, c := range p.Curves {
			w := want[c.Name]
			for i := range max(len(c.X), len(w[0])) {
				if len(c.X) != len(w[0]) || c.X[i] != w[0][i] || math.Abs(c.Y[i]-w[1][i]) > 1e-12 {
					t.Errorf("%s: %v, %v, want %v", c.Name, c.X, c.Y, w)
					break
				}
			}
		}
	}
	check(panels[0], map[string][2][]float64{"standard": {{1, 2}, {50, 40}}, "offline RNA": {{2}, {30}},
		"online RNA": {{1, 2}, {51, 35}}})
	check(panels[1], map[string][2][]float64{"c of offline RNA": {{2}, {.125}}, "c of noise alone": {{2}, {.25}}})
	var b bytes.Buffer
	if err := demoStudy().Plot(&b, "svg"); err != nil || !strings.Contains(b.String(), ">online RNA<") {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
	if err := (Study{}).Plot(&b, "svg"); err == nil {
		t.Error("a figure of nothing")
	}
}
