package network

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"onlinerna/data"
	"onlinerna/nn/op"
)

// teacher is a network whose logits another one learns.
type teacher struct {
	*Network
	said op.Tensor // the logits of the last batch
}

// Teach makes t the teacher of a network with nn.Config.Teacher: it sees the batches that the network is trained on, as
// they are, with its running statistics and its own normalisation. n closes it.
func (n *Network) Teach(t *Network) error {
	own, other := n.model.Config, t.model.Config
	switch {
	case own.Teacher == 0:
		return errors.New("a teacher without a weight in the loss")
	case n.teacher != nil || len(n.programs) > 0:
		return errors.New("a teacher comes before the first batch")
	case own.Classes != other.Classes:
		return fmt.Errorf("%s has %d outputs, and %s has %d: a teacher knows the same classes", t.arch, other.Classes, n.arch,
			own.Classes)
	case own.Channels != other.Channels:
		return fmt.Errorf("%s takes images of %d channels, and %s of %d", t.arch, other.Channels, n.arch, own.Channels)
	case !t.Meaning.Classifies():
		return fmt.Errorf("the outputs of %s are for the task %s: a teacher tells one class from others", t.arch,
			t.Meaning.Task)
	}
	t.arena = n.arena // they never run at the same time
	n.teacher = &teacher{Network: t}
	return nil
}

// lesson returns the teacher's logits for a batch.
func (n *Network) lesson(b *data.Batch) (op.Tensor, error) {
	t := n.teacher
	if t == nil {
		return op.Tensor{}, errors.New("there is no teacher: see Network.Teach")
	}
	if t.said.Shape == nil || t.said.Shape[0] != b.N {
		t.said = op.New(op.T(n.Device.DType(), b.N, n.model.Config.Classes))
	}
	err := n.part(Teaching, func() error {
		p, err := t.StartEvaluation(b)
		if err == nil {
			err = p.logits(t.said.Data)
		}
		if err == nil {
			_, _, err = p.Wait()
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("the teacher: %w", err)
	}
	return t.said, err
}

// prepareTeacher plans the teacher's programs for those of training, and returns the memory that they take beside the
// arena.
func (n *Network) prepareTeacher(other int64, list []Work) (int64, error) {
	var lessons []Work
	for _, w := range list {
		if w.Use == Training {
			w.Use = Evaluation
			lessons = append(lessons, w)
		}
	}
	if n.teacher == nil || len(lessons) == 0 {
		return 0, nil
	}
	if err := n.teacher.Prepare(other, lessons...); err != nil {
		return 0, fmt.Errorf("the teacher: %w", err)
	}
	return n.teacher.beside(), nil
}

// Fingerprint identifies the network's weights and statistics on any device: those of equal files are equal.
func (n *Network) Fingerprint() (string, error) {
	h := sha256.New()
	for _, e := range n.model.StateDict() {
		x, err := n.entry(e, n.Params, n.Stats)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, e.Name, e.Shape)
		if err := binary.Write(h, binary.LittleEndian, x); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}
