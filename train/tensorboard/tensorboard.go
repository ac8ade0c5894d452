// Package tensorboard writes a run's metrics for TensorBoard: a hook that writes a file events.out.tfevents.* in a
// folder, with the loss and the rate of each step and the losses and errors of each epoch.
package tensorboard

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"onlinerna/internal/checksum"
	"onlinerna/internal/protobuf"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// Hook is the hook named "tensorboard". A resumed run starts a new file, whose steps replace the same steps in earlier
// files.
type Hook struct {
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

// New is a hook that writes into the folder dir. The first step creates the file.
func New(dir string) *Hook { return &Hook{dir: dir, now: time.Now} }

// Name implements hook.Hook.
func (h *Hook) Name() string { return "tensorboard" }

// Async implements hook.AsyncHook.
func (h *Hook) Async() bool { return true }

// AfterStep writes the minimised loss, top-1 and the learning rate.
func (h *Hook) AfterStep(_ context.Context, s *hook.State) error {
	if err := h.open(s.Steps); err != nil {
		return err
	}
	r := s.Step
	return h.write(r.Step, scalar{"step/loss", r.Loss}, scalar{"step/top1", r.Top1}, scalar{"step/rate", r.Rate})
}

// AfterEpoch writes the losses and the errors in percent of all weights.
func (h *Hook) AfterEpoch(_ context.Context, s *hook.State) error {
	if err := h.open(s.Steps); err != nil {
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
	return errors.Join(h.write(r.Step, list...), h.buf.Flush())
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
func (h *Hook) open(step int) error {
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
	if err := h.record(event(now, 0, 3, []byte("brain.Event:2"))); err != nil || step <= 1 {
		return err
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
		v := protobuf.Bytes(nil, 1, x.tag)
		v = protobuf.Fixed32(v, 2, math.Float32bits(float32(x.value)))
		summary = protobuf.Bytes(summary, 1, v)
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
	b := protobuf.Fixed64(nil, 1, math.Float64bits(float64(at.UnixNano())/1e9))
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
