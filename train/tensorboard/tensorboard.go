// Package tensorboard writes a run's metrics for TensorBoard: a hook that writes a file events.out.tfevents.* in a
// folder, with the loss and the rate of each step, the losses and errors of each epoch, RNA's coefficients, histograms
// of weights, a sheet of augmented images and the options.
package tensorboard

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"time"

	"onlinerna/internal/checksum"
	"onlinerna/internal/protobuf"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/option"
)

// Hook is the hook named "tensorboard". A resumed run starts a new file, whose steps replace the same steps in earlier
// files.
type Hook struct {
	Config
	dir  string
	now  func() time.Time
	file *os.File
	buf  *bufio.Writer
	next time.Time // time of the next flush
}

var (
	_ hook.AsyncHook   = (*Hook)(nil)
	_ hook.EpochHook   = (*Hook)(nil)
	_ hook.ClosingHook = (*Hook)(nil)
)

// Config lists a Hook's outputs besides metrics.
type Config struct {
	Idle       bool             // write nothing: another process does
	Options    []option.Setting // of the run, as resolved
	Histograms int              // epochs from one set of histograms to the next; 0: none
	// Sheet draws augmented images; nil: none.
	Sheet func(ctx context.Context) (image.Image, error)
}

// New is a hook that writes into the folder dir. The first step creates the file.
func New(dir string, c Config) *Hook { return &Hook{Config: c, dir: dir, now: time.Now} }

// Name implements hook.Hook.
func (h *Hook) Name() string { return "tensorboard" }

// Async implements hook.AsyncHook.
func (h *Hook) Async() bool { return true }

// AfterStep writes the minimised loss, top-1 and the learning rate.
func (h *Hook) AfterStep(ctx context.Context, s *hook.State) error {
	if h.Idle {
		return nil
	}
	if err := h.open(ctx, s.Steps); err != nil {
		return err
	}
	r := s.Step
	return h.write(r.Step, scalar{"step/loss", r.Loss}, scalar{"step/top1", r.Top1}, scalar{"step/rate", r.Rate})
}

// AfterEpoch writes the losses and the errors in percent of all weights, RNA's coefficients and histograms.
func (h *Hook) AfterEpoch(ctx context.Context, s *hook.State) error {
	if h.Idle {
		return nil
	}
	if err := h.open(ctx, s.Steps); err != nil {
		return err
	}
	r := s.Record
	list := []scalar{{"images per second", r.ImagesPerSecond}}
	optimizer := s.Optimizer
	add := func(images, name string, x network.Score) {
		list = append(list, scalar{images + " loss/" + name, x.Loss}, scalar{images + " error/" + name, x.Error()})
	}
	add("training", optimizer, r.Train)
	for _, x := range append(r.Scores(), r.Others...) {
		add("validation", x.Name(optimizer), x.Score)
	}
	for _, x := range r.Held {
		add("held-out", x.Name(optimizer), x.Score)
	}
	list = append(list, coefficients(r.RNA)...)
	if err := h.write(r.Step, list...); err != nil {
		return err
	}
	if k := h.Histograms; k > 0 && (r.Epoch%k == 0 || s.LastEpoch()) {
		if err := h.histograms(s); err != nil {
			return err
		}
	}
	if s.LastEpoch() {
		if err := h.record(event(h.now(), r.Step, 5, end(h.now()))); err != nil {
			return err
		}
	}
	return h.buf.Flush()
}

// coefficients are those of an extrapolation by the age of the snapshot, with the norm of c.
func coefficients(r *hook.RNARecord) (list []scalar) {
	if r == nil || len(r.C) == 0 {
		return nil
	}
	for i := range r.C {
		list = append(list, scalar{fmt.Sprintf("RNA coefficient/%02d before the newest", i), r.C[len(r.C)-1-i]})
	}
	return append(list, scalar{"RNA/norm of c", r.NormC})
}

// histograms writes the distribution of each parameter of the iterate.
func (h *Hook) histograms(s *hook.State) error {
	weights, err := s.Iterate()
	if err != nil {
		return err
	}
	var summary []byte
	names := s.Net.ParameterNames()
	for i, span := range s.Net.Tensors() {
		list := make([]float32, span.Len)
		if err := weights.ReadAt(list, span.Off); err != nil {
			return err
		}
		summary = append(summary, histogram("weights/"+names[i], list)...)
	}
	return h.record(event(h.now(), s.Record.Step, 5, summary))
}

// introduce writes the options of a run that starts, and a sheet of its images.
func (h *Hook) introduce(ctx context.Context) error {
	now := h.now()
	summary := append(start(h.Options, now), text("options", table(h.Options))...)
	if h.Sheet != nil {
		m, err := h.Sheet(ctx)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			return err
		}
		summary = append(summary, picture("augmented images", m.Bounds().Dx(), m.Bounds().Dy(), b.Bytes())...)
	}
	return h.record(event(now, 0, 5, summary))
}

// Close implements hook.ClosingHook.
func (h *Hook) Close() error {
	if h.file == nil {
		return nil
	}
	err := errors.Join(h.buf.Flush(), h.file.Close())
	h.file = nil
	return err
}

// open creates the file at its first step.
func (h *Hook) open(ctx context.Context, step int) error {
	if h.file != nil {
		return nil
	}
	now := h.now()
	// TensorBoard reads the files in the order of their names, so these sort by time.
	f, err := os.OpenFile(filepath.Join(h.dir, fmt.Sprintf("events.out.tfevents.%d.%09d", now.Unix(), now.Nanosecond())),
		os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	h.file, h.buf, h.next = f, bufio.NewWriter(f), now
	if err := h.record(event(now, 0, 3, []byte("brain.Event:2"))); err != nil {
		return err
	}
	if step <= 1 {
		return h.introduce(ctx)
	}
	// SessionLog START voids other files' events from this step on
	return h.record(event(now, step, 7, protobuf.Varint(nil, 1, 1)))
}

// scalar is a value with its tag.
type scalar struct {
	tag   string
	value float64
}

// write writes a step's finite values.
func (h *Hook) write(step int, list ...scalar) error {
	var summary []byte
	for _, x := range list {
		if math.IsNaN(x.value) {
			continue
		}
		summary = append(summary, value(x.tag, protobuf.Fixed32(nil, simpleValue, math.Float32bits(float32(x.value))))...)
	}
	now := h.now()
	if err := h.record(event(now, step, 5, summary)); err != nil || now.Before(h.next) {
		return err
	}
	h.next = now.Add(5 * time.Second)
	return h.buf.Flush()
}

// event is tensorflow.Event: wall_time = 1, step = 2 and one of file_version = 3, summary = 5, session_log = 7.
func event(at time.Time, step, field int, content []byte) []byte {
	b := protobuf.Fixed64(nil, 1, math.Float64bits(seconds(at)))
	if step > 0 {
		b = protobuf.Varint(b, 2, uint64(step))
	}
	return protobuf.Bytes(b, field, content)
}

// masked is TFRecord's masked checksum.
func masked(b []byte) uint32 {
	c := checksum.Add(0, b)
	return (c>>15 | c<<17) + 0xa282ead8
}

// record writes a TFRecord: the length and its checksum, the payload and its checksum.
func (h *Hook) record(payload []byte) error {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, payload...)
	b = binary.LittleEndian.AppendUint32(b, masked(payload))
	_, err := h.buf.Write(b)
	return err
}
