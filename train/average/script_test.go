package average_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/internal/traintest"
	"onlinerna/train/network"
	"onlinerna/train/safetensors"
	"onlinerna/train/schedule"
)

// averaging is either hook of this package.
type averaging interface {
	hook.OpeningHook
	hook.EpochHook
	hook.SavingHook
	hook.ClosingHook
}

// play describes a scripted run.
type play struct {
	name        string
	net         string // one of traintest.Small
	epochs      int
	ends        int // epoch that may be the last
	batches     int // per epoch
	stepBatches int
	val, held   bool
	schedule    schedule.Schedule
	skips       int // step that the device skips
	resume      int // step after which another hook loads the state of this one
	again       int // epoch whose hooks are called twice, as after an interruption among them
	weights     func(epoch int) float64
	hook        func() averaging
}

// script is a run for hooks: its weights, scores and gradients follow from formulas, so that the golden files hold the
// same numbers on all processors. It notes the hooks' calls, and any of them may fail.
type script struct {
	play
	*traintest.Faults
	t        testing.TB
	dir      string
	net      *network.Network
	velocity []float64
	text     strings.Builder
}

var _ hook.Run = (*script)(nil)

// elements is a vector's storage, which is read and written without faults.
func elements(v device.Vector) []float64 { return v.(device.Elements[float64]).Elements() }

// note writes down a call and returns its error.
func (r *script) note(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	fmt.Fprintf(&r.text, "  %s\n", what)
	return r.Call(strings.TrimSuffix(strings.Fields(what)[0], ":"))
}

// target is the minimum of the loss, and rate the curvature.
func target(i int) (m, rate float64) { return 1 / float64(i+1), float64(1+i%4) / 4 }

// heldImages is the number of held-out images.
const heldImages = 12

// gradientScale is the scale of the gradients in the network.
const gradientScale = 0.25

// step makes a step of heavy-ball descent on a quadratic function with a periodic disturbance.
func (r *script) step(s *hook.State) {
	w, grads := elements(r.net.Params), elements(r.net.Grads)
	for i := range w {
		m, rate := target(i)
		g := rate*(w[i]-m) + 0.2*math.Cos(float64(s.Steps*(i+1)))
		grads[i] = g / gradientScale
		r.velocity[i] = 0.5*r.velocity[i] - 0.3*g
		w[i] += r.velocity[i]
		if r.weights != nil {
			w[i] = r.weights(s.Epoch) * (1 - float64((i*s.Epoch)%7)/1000)
		}
	}
	if r.net.Stats != nil {
		stats := elements(r.net.Stats)
		for i, x := range r.statistics() {
			stats[i] += (x - stats[i]) / 4
		}
	}
}

// statistics are those that fit the weights: a mean and a variance.
func (r *script) statistics() []float64 {
	w := elements(r.net.Params)
	return []float64{w[0] + w[3], 0.1 + w[1]*w[1]}
}

// loss is that of an image.
func (r *script) loss(image int) float64 {
	sum := 0.0
	for i, w := range elements(r.net.Params) {
		m, rate := target(i)
		d := w - m - 0.1*math.Sin(float64(i*image))
		sum += rate * d * d
	}
	if r.net.Stats != nil {
		for i, x := range r.statistics() {
			d := elements(r.net.Stats)[i] - x
			sum += d * d
		}
	}
	return sum
}

func (r *script) score(images int) *network.Score {
	s := &network.Score{Images: images, Top5: 100}
	for i := range images {
		x := r.loss(i)
		if s.Loss += x / float64(images); x < 1 {
			s.Top1 += 100 / float64(images)
		}
	}
	return s
}

func (r *script) Temporarily(fn func() error) error {
	var kept [][]float64
	list := []device.Vector{r.net.Params}
	if r.net.Stats != nil {
		list = append(list, r.net.Stats)
	}
	for _, v := range list {
		kept = append(kept, slices.Clone(elements(v)))
	}
	err := fn()
	for i, v := range list {
		copy(elements(v), kept[i])
	}
	return err
}

func (r *script) Iterate() (device.Vector, error) { return r.net.Params, r.Call("iterate") }

func (r *script) Recalibrate(context.Context) error {
	if r.net.Stats != nil {
		copy(elements(r.net.Stats), r.statistics())
	}
	return r.note("recalibrate")
}

func (r *script) Statistics() ([]float64, error) {
	if r.net.Stats == nil {
		return nil, r.note("statistics of a net without them")
	}
	return slices.Clone(elements(r.net.Stats)), r.note("statistics")
}

func (r *script) Evaluate(context.Context) (*network.Score, error) {
	if !r.val {
		return nil, r.note("evaluate nothing")
	}
	s := r.score(4)
	return s, r.note("evaluate: %.12g", s.Loss)
}

func (r *script) EvaluateHeld(context.Context) (*network.Score, error) {
	panic("no hook of this package scores weights on held-out images alone")
}

func (r *script) HeldLosses(context.Context) ([]float64, error) {
	if !r.held {
		return nil, r.note("losses of nothing")
	}
	list := make([]float64, heldImages)
	for i := range list {
		list[i] = r.loss(i)
	}
	return list, r.note("losses: %s", traintest.Row(list))
}

func (r *script) Scores() bool { return r.val || r.held }

func (r *script) Judge(_ context.Context, rec *hook.EpochRecord, of hook.ScoreRecord, val *network.Score) error {
	if r.held {
		of.Score = *r.score(heldImages)
		rec.Held = append(rec.Held, of)
	} else if val != nil {
		of.Score = *val
	}
	return r.note("judge %s of %d: %.12g", of.Kind, of.Snapshots, of.Score.Loss)
}

func (r *script) Keep(name string, of hook.ScoreRecord) error {
	return r.note("keep %s: %s of %d, gamma %g: %s", name, of.Kind, of.Snapshots, of.Gamma, r.point())
}

func (r *script) Gradient(step *hook.StepRecord) (device.Vector, float64, error) {
	if step.Step == r.skips {
		return nil, 0, r.Call("gradient")
	}
	return r.net.Grads, gradientScale, r.Call("gradient")
}

func (r *script) ResetMomentum() error {
	clear(r.velocity)
	return r.note("reset the momentum")
}

// point writes the weights and statistics in the network.
func (r *script) point() string {
	text := traintest.Row(elements(r.net.Params))
	if r.net.Stats != nil {
		text += " | " + traintest.Row(elements(r.net.Stats))
	}
	return text
}

// record is the part of a record that the hooks write.
func (r *script) record(rec *hook.EpochRecord) {
	r.text.WriteString(traintest.Lines(r.t, struct {
		RNA      *hook.RNARecord      `json:"rna,omitempty"`
		SGDStats *network.Score       `json:"sgd_bn,omitempty"`
		Averages []hook.AverageRecord `json:"averages,omitempty"`
		EMA      *network.Score       `json:"ema,omitempty"`
	}{rec.RNA, rec.SGDStats, rec.Averages, rec.EMA}))
}

// window writes the state of RNA's window.
func (r *script) window(h averaging) {
	if h, ok := h.(*average.RNA); ok {
		st := h.Window().State()
		if most := h.Holds().Snapshots; st.Vectors > most {
			r.t.Errorf("%d snapshots, and the hook says that it holds %d", st.Vectors, most)
		}
		fmt.Fprintf(&r.text, "window: %d of %d residuals, %d vectors, %d pushes; tail %d; columns %v; Gram %s\n",
			len(st.Columns), st.N, st.Vectors, st.Pushes, st.Tail, st.Columns, traintest.Row(st.Gram))
	}
}

// files writes the tensors of the files in a folder.
func (r *script) files(dir string) {
	for _, name := range files(r.t, dir) {
		if filepath.Ext(name) != ".safetensors" {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				r.t.Fatal(err)
			}
			fmt.Fprintf(&r.text, "%s: %s\n", name, strings.Join(strings.Fields(string(b)), " "))
			continue
		}
		f, err := safetensors.Open(filepath.Join(dir, name))
		if err != nil {
			r.t.Fatal(err)
		}
		fmt.Fprintf(&r.text, "%s:", name)
		for _, x := range f.Tensors {
			list := make([]float64, x.Len())
			if err := f.Float64s(x, list, 0); err != nil {
				r.t.Fatal(err)
			}
			fmt.Fprintf(&r.text, " %s %s;", x.Name, traintest.Row(list))
		}
		r.text.WriteByte('\n')
		f.Close()
	}
}

// saved saves a hook's state into a new folder.
func (r *script) saved(s *hook.State, h averaging) (small json.RawMessage, err error) {
	r.dir = r.t.TempDir()
	return h.Save(s, r.dir)
}

// stage has the networks of scripted runs, one of each name.
type stage struct {
	*testing.T
	nets   map[string]*network.Network
	faults traintest.Faults
}

// script returns a run with weights by a formula. From now on the call of a number fails.
func (g *stage) script(c play, fail int) *script {
	g.Helper()
	traintest.Small()
	g.faults = traintest.Faults{}
	n := g.nets[c.net]
	if n == nil {
		var err error
		dev := traintest.Fragile{Device: device.NewReference(op.Float64), Faults: &g.faults}
		if n, err = network.New(dev, c.net, nn.Config{}, 1); err != nil {
			g.Fatal(err)
		}
		g.Cleanup(func() { n.Close() })
		if g.nets == nil {
			g.nets = map[string]*network.Network{}
		}
		g.nets[c.net] = n
	}
	for i := range elements(n.Params) {
		elements(n.Params)[i] = 1 - float64(i)/8
	}
	if n.Stats != nil {
		copy(elements(n.Stats), []float64{0, 1})
	}
	g.faults = traintest.Faults{Fail: fail}
	return &script{play: c, Faults: &g.faults, t: g, net: n, velocity: make([]float64, n.Params.Len())}
}

// state is that of a script before its first step.
func (r *script) state() *hook.State {
	return hook.New(hook.State{Net: r.net, Epochs: r.epochs, Batches: r.batches, StepBatches: max(1, r.stepBatches),
		Schedule: r.schedule, Threads: 1, Seconds: new(hook.Seconds)}, r)
}

// play runs a play and returns the text with its error. A play with a fault ends without saving.
func (g *stage) play(c play, fail int) (text string, err error) {
	g.Helper()
	r := g.script(c, fail)
	s, h := r.state(), c.hook()
	start := time.Now()
	defer func() {
		if x := s.Seconds; min(x.RNA, x.RNAEval, x.EMA) < 0 || x.RNA+x.RNAEval+x.EMA > time.Since(start).Seconds() {
			g.Errorf("%s: times %+v of %v", c.name, x, time.Since(start))
		}
		if e := h.Close(); e != nil {
			g.Error(e)
		}
		if text = r.text.String(); err != nil && r.dir != "" {
			err = errors.New(strings.ReplaceAll(err.Error(), r.dir, "DIR"))
		}
	}()
	if err := h.Open(s); err != nil {
		return "", err
	}
	for s.Epoch = 1; s.Epoch <= c.epochs; s.Epoch++ {
		fmt.Fprintf(&r.text, "epoch %d\n", s.Epoch)
		s.Record = &hook.EpochRecord{Kind: "epoch", Epoch: s.Epoch}
		s.Ends = s.Epoch == c.ends
		for s.Batch = 0; s.Batch < s.Batches; {
			if err := r.advance(s, h); err != nil {
				return "", err
			}
			if s.Steps == c.resume {
				if h, err = r.resumed(s, h); err != nil {
					return "", err
				}
			}
		}
		fmt.Fprintf(&r.text, "iterate: %s\n", r.point())
		if c.held {
			s.Record.Held = []hook.ScoreRecord{{Kind: network.SGD, Score: *r.score(heldImages)}}
			fmt.Fprintf(&r.text, "held-out loss: %.12g\n", s.Record.Held[0].Score.Loss)
		}
		times := 1
		if s.Epoch == c.again {
			times = 2
		}
		for range times {
			if err := h.AfterEpoch(g.Context(), s); err != nil {
				return "", err
			}
			r.record(s.Record)
			r.window(h)
		}
	}
	fmt.Fprintf(&r.text, "end: %s\n", r.point())
	if fail > 0 {
		return "", nil
	}
	s.Epoch--
	small, err := r.saved(s, h)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&r.text, "state\n%s", traintest.Lines(g, small))
	r.files(r.dir)
	return "", nil
}

// advance makes a step and calls the hook as a run does.
func (r *script) advance(s *hook.State, h averaging) error {
	s.Batch = min(s.Batch+s.StepBatches, s.Batches)
	s.Steps++
	s.Step = &hook.StepRecord{Epoch: s.Epoch, Step: s.Steps}
	r.step(s)
	switch h := h.(type) {
	case hook.QueuedHook:
		return h.AfterIssue(r.t.Context(), s)
	case hook.AsyncHook:
		if !h.Async() {
			return h.AfterStep(r.t.Context(), s)
		}
	}
	return nil
}

// resumed returns another hook that has loaded the state of one, which it closes.
func (r *script) resumed(s *hook.State, h averaging) (averaging, error) {
	small, err := r.saved(s, h)
	if err != nil {
		return h, err
	}
	other := r.hook()
	if err = other.Open(s); err == nil {
		err = other.Load(s, r.dir, small)
	}
	return other, errors.Join(err, h.Close())
}
