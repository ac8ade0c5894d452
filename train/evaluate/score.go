package evaluate

import (
	"context"
	"fmt"
	"slices"

	"onlinerna/data"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// compare returns an error if ranks have different evaluations.
func (e *evaluation) compare(g *ranks.Group, o *Options) error {
	if g.Single() {
		return nil
	}
	weights, err := network.Hash(e.net.Params)
	if err = g.Together(err); err != nil {
		return err
	}
	facts := []ranks.Fact{{Name: "hash of the weights", Value: weights}}
	for _, x := range []struct {
		name  string
		value any
	}{
		{"model", e.meta.Model}, {"classes", e.set.Classes()}, {"images", e.set.Len()}, {"val-split", o.ValSplit},
		{"all-images", o.AllImages}, {"batch", o.Batch},
		{"image size", []int{e.meta.ImageSize, e.meta.ValResize}}, {"interpolation", e.meta.Interpolation},
		{"fast-decode", o.FastDecode},
		{"normalisation", [][]float64{e.meta.Mean, e.meta.Std}}, {"test-flip", o.TestFlip}, {"precision", o.Precision},
		{"ranking", o.Ranking}, {"predictions", o.Predictions}, {"worst", []any{o.Sheet.Path, o.Sheet.Count, o.extremes}}, {"max-bad", o.MaxBad},
	} {
		facts = append(facts, ranks.Fact{Name: x.name, Value: fmt.Sprint(x.value)})
	}
	for _, x := range data.IdentityOf(e.set).Facts() {
		facts = append(facts, ranks.Fact{Name: "evaluated images: " + x[0], Value: x[1]})
	}
	return g.Compare(facts...)
}

// score evaluates, and writes the predictions if requested. Each rank evaluates its own batches, which are merged on
// rank 0.
func (o *Options) score(ctx context.Context, g *ranks.Group, e *evaluation) (network.Score, error) {
	classes := e.net.Model().Config.Classes
	if n := max(o.Sheet.Count, o.extremes); o.Sheet.Path != "" || o.extremes > 0 {
		o.report.worst = &worst{most: n, classes: classes, net: e.net}
	}
	if o.extremes > 0 {
		o.report.best = &worst{most: o.extremes, classes: classes, net: e.net, lowest: true}
	}
	var p *predictions
	var write func([]byte) error
	if o.Predictions != "" && g.First() {
		var err error
		if p, err = newPredictions(o.Predictions, o.report.names, &e.net.Meaning); err != nil {
			return network.Score{}, err
		}
		defer p.Abort()
		write = p.write
	}
	user := ctx
	m := ranks.NewMeetings(g, e.loader.Steps(), func() bool { return user.Err() != nil }, write)
	if !g.Single() {
		ctx = context.WithoutCancel(ctx)
	}
	var lines []byte
	sum, err := e.net.Tally(ctx, e.loader, func(b *data.Batch, logits []float32) error {
		if err := m.Before(b.Step); err != nil {
			return err
		}
		for _, l := range o.report.lists() {
			l.add(b, logits)
		}
		o.report.add(b, logits)
		switch {
		case o.Predictions == "":
		case g.Single():
			lines = o.appendPredictions(lines[:0], e, b, logits)
			return write(lines)
		default:
			m.Give(b.Step, o.appendPredictions(nil, e, b, logits))
		}
		return nil
	}, nil)
	if err == nil {
		err = m.Rest()
	}
	if err == nil {
		err = o.report.sum(g, &sum)
	}
	bad := e.loader.Images() - sum.Images
	switch {
	case err != nil:
		return network.Score{}, err
	case !g.Single() && bad > e.loader.Allowed():
		return network.Score{}, &ranks.RankError{Name: "all ranks", Err: &data.TooManyBad{Bad: bad, Of: e.loader.Images(),
			Allowed: e.loader.Allowed()}}
	case sum.Images == 0:
		return network.Score{}, network.ErrNoImage
	case p != nil:
		err = p.commit()
	}
	if o.report.outputs != nil {
		return o.report.outputs.Score(), err
	}
	return sum.Score(), err
}

// sum adds up the results of all ranks.
func (r *Report) sum(g *ranks.Group, t *network.Tally) error {
	if g.Single() {
		return nil
	}
	x := []float64{t.Loss, t.Top1, t.Top5, float64(t.Images)}
	if r.outputs != nil {
		if err := g.Sum64(r.outputs.Vector()).Wait(); err != nil {
			return err
		}
	}
	for _, b := range r.bins {
		x = append(x, b.n, b.right, b.confidence)
	}
	for _, row := range r.confusion {
		for _, n := range row {
			x = append(x, float64(n))
		}
	}
	if err := g.Sum64(x).Wait(); err != nil {
		return err
	}
	*t, x = network.Tally{Loss: x[0], Top1: x[1], Top5: x[2], Images: int(x[3])}, x[4:]
	for i := range r.bins {
		b := &r.bins[i]
		b.n, b.right, b.confidence, x = x[0], x[1], x[2], x[3:]
	}
	for _, row := range r.confusion {
		for k := range row {
			row[k], x = int(x[0]), x[1:]
		}
	}
	if r.ranking {
		if err := r.gather(g); err != nil {
			return err
		}
	}
	for _, l := range r.lists() {
		list, err := ranks.GatherAll(g, l.list)
		if err != nil {
			return err
		}
		slices.SortFunc(list, l.order)
		l.list = list[:min(len(list), l.most)]
	}
	return nil
}
