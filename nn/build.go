package nn

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// Build builds the named architecture; Architectures lists them. Several goroutines may build at once.
func Build(arch string, c Config) (*Model, error) {
	a, err := Lookup(arch)
	if err != nil {
		return nil, err
	}
	return a.Model(c)
}

// Model builds the architecture, which need not be registered.
func (a Architecture) Model(c Config) (*Model, error) {
	a = a.withDefaults()
	c, err := c.resolve(a)
	if err != nil {
		return nil, fmt.Errorf("nn: %s: %w", a.Name, err)
	}
	m := &Model{Arch: a, Config: c, Graph: G.NewGraph(G.WithGraphName(a.Name))}
	b := &Builder{model: m, names: map[string]bool{}}
	b.inputs()
	m.Logits = a.Build(b, m.Input)
	b.outputs()
	if b.err == nil {
		b.err = b.checkFreeze()
	}
	if b.err == nil && c.Mode == Train {
		b.err = m.differentiate()
	}
	if b.err != nil {
		at := fmt.Sprintf("input size %d", c.Size)
		if c.Mode == Train {
			at += fmt.Sprintf(", batch %d", c.Batch)
		}
		return nil, fmt.Errorf("nn: %s at %s: %w", a.Name, at, b.err)
	}
	return m, nil
}

// inputs adds the inputs of a batch.
func (b *Builder) inputs() {
	m, c := b.model, b.model.Config
	m.Labels = b.batchInput("labels", op.T(op.Int32, c.Batch))
	if c.FloatInput {
		m.Input = b.batchInput("input", op.T(c.DType, c.Batch, c.Channels, c.Size, c.Size))
		return
	}
	m.Images = b.batchInput("images", op.T(op.Uint8, c.Batch, c.ImageHeight, c.ImageWidth, c.Channels))
	m.Crops = b.batchInput("crops", op.T(op.Int32, c.Batch, 3))
	m.Input = b.Apply("normalise", op.Images{
		DType: c.DType, Height: c.Size, Width: c.Size, Mean: c.Mean, Std: c.Std,
	}, m.Images, m.Crops)
}

// outputs adds the loss and the score.
func (b *Builder) outputs() {
	m, c := b.model, b.model.Config
	if s, ok := b.shape("loss", m.Logits, 2); ok {
		if want := (op.Shape{c.Batch, c.Classes}); !s.Equal(want) {
			b.Fail(fmt.Errorf("the logits have the shape %v: it must be %v", s, want))
		}
	}
	if c.Mode == Train && c.Teacher > 0 {
		m.Teacher = b.batchInput("teacher", op.T(c.DType, c.Batch, c.Classes))
		taught := b.Apply("teacher_loss", op.DistillLoss{Temperature: c.Temperature}, m.Logits, m.Teacher)
		m.Loss = b.Map("loss", x0.Scale(1-c.Teacher).Add(x1.Scale(c.Teacher)), b.loss("label_loss"), taught)
	} else {
		m.Loss = b.loss("loss")
	}
	m.Score = b.Apply("score", op.Score{}, m.Logits, m.Labels)
}

// loss is the loss by labels or targets.
func (b *Builder) loss(name string) *G.Node {
	m, c := b.model, b.model.Config
	if c.Mode == Train && c.Loss != CrossEntropy {
		m.Targets = b.batchInput("targets", op.T(c.DType, c.Batch, c.Classes))
		return b.Apply(name, c.targetLoss(), m.Logits, m.Targets)
	}
	return b.Apply(name, op.SoftmaxCrossEntropy{Smoothing: c.Smoothing}, m.Logits, m.Labels)
}

// differentiate adds the gradients of the loss.
func (m *Model) differentiate() error {
	wrt := make(G.Nodes, 0, len(m.Params)+1)
	for _, p := range m.Params {
		if !p.Frozen {
			wrt = append(wrt, p.Node)
		}
	}
	if m.Config.FloatInput {
		wrt = append(wrt, m.Input)
	}
	grads, err := Grad(m.Loss, wrt...)
	if err != nil {
		return err
	}
	for i := range m.Params {
		if !m.Params[i].Frozen {
			m.Params[i].Grad, grads = grads[0], grads[1:]
		}
	}
	if m.Config.FloatInput {
		m.InputGrad = grads[0]
	}
	return nil
}
