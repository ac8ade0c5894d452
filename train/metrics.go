package train

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"onlinerna/internal/checksum"
	"onlinerna/internal/files"
	"onlinerna/train/hook"
)

const metricsName = "metrics.jsonl"

// waiting is the number of bytes of whole lines that wait to be written together.
const waiting = 4 << 10

// metricsHook writes metrics.jsonl: a line for each step and each epoch.
type metricsHook struct {
	dir     string
	idle    bool                // read-only: another process writes
	history *[]hook.EpochRecord // the run's history, which a resumed run reads from the file
	file    *os.File
	lines   []byte                           // that wait to be written
	flushed time.Time                        // when lines were written last: rna watch reads them within about a second
	size    int64                            // bytes, with those that wait
	sum     uint32                           // their checksum
	log     func(format string, args ...any) // for faults found while a checkpoint is loaded
	warn    func(format string, args ...any) // for faults found later
}

// metricsState is the state of the file that a checkpoint stores.
type metricsState struct {
	Bytes int64  `json:"bytes"`
	Sum   string `json:"crc32c"`
}

var (
	_ hook.AsyncHook   = (*metricsHook)(nil)
	_ hook.EpochHook   = (*metricsHook)(nil)
	_ hook.SavingHook  = (*metricsHook)(nil)
	_ hook.ClosingHook = (*metricsHook)(nil)
)

func (h *metricsHook) Name() string { return "metrics" }

// Async implements AsyncHook.
func (h *metricsHook) Async() bool { return true }

func (h *metricsHook) AfterStep(_ context.Context, s *hook.State) error { return h.write(s.Step) }

func (h *metricsHook) AfterEpoch(_ context.Context, s *hook.State) error {
	if err := h.write(s.Record); err != nil {
		return err
	}
	if h.idle {
		return nil
	}
	return h.flush()
}

func (h *metricsHook) path() string { return filepath.Join(h.dir, metricsName) }

// open opens the file and truncates it to size bytes.
func (h *metricsHook) open() error {
	f, err := files.Append(h.path(), h.size)
	if err != nil {
		return err
	}
	h.file, h.lines = f, nil
	return nil
}

func (h *metricsHook) write(v any) error {
	if h.idle {
		return nil
	}
	if h.file == nil {
		if err := h.open(); err != nil {
			return err
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := h.notice(); err != nil {
		return err
	}
	h.add(append(b, '\n'))
	if len(h.lines) < waiting && time.Since(h.flushed) < time.Second {
		return nil
	}
	return h.flush()
}

// flush writes the lines that wait.
func (h *metricsHook) flush() error {
	if h.file == nil || len(h.lines) == 0 {
		return nil
	}
	_, err := files.Asking(h.file).Write(h.lines)
	h.lines, h.flushed = h.lines[:0], time.Now()
	return err
}

// notice finds out whether another program has removed, replaced or cut the file. One that lost its name is written
// again; of one that was cut the whole lines stay.
func (h *metricsHook) notice() error {
	own, err := h.file.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(h.path())
	there, written := err == nil && os.SameFile(named, own), h.size-int64(len(h.lines))
	switch {
	case own.Size() < written:
		h.warn("Warning: %s has been cut to %d bytes while the run goes on: steps and epochs are missing there, the run's weights are "+
			"as they were", h.path(), own.Size())
	case !there:
		h.warn("Warning: %s has been removed or replaced while the run goes on: it is written again", h.path())
	default:
		return nil
	}
	b, err := io.ReadAll(io.NewSectionReader(h.file, 0, written))
	if err != nil {
		return err
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	if !there {
		if err := files.Write(h.path(), b); err != nil {
			return err
		}
	}
	if err := h.file.Close(); err != nil {
		return err
	}
	lines := h.lines
	h.size, h.sum = int64(len(b)), checksum.Add(0, b)
	if err := h.open(); err != nil {
		return err
	}
	h.add(lines)
	return nil
}

// add lets lines wait to be written.
func (h *metricsHook) add(b []byte) {
	h.lines = append(h.lines, b...)
	h.size += int64(len(b))
	h.sum = checksum.Add(h.sum, b)
}

// Save records the length of the file, so that a resumed run drops the lines of steps that it repeats.
func (h *metricsHook) Save(*hook.State, string) (json.RawMessage, error) {
	if h.file != nil {
		if err := errors.Join(h.notice(), h.flush(), files.Sync(h.file)); err != nil {
			return nil, err
		}
	}
	return json.Marshal(metricsState{h.size, checksum.Digits(h.sum)})
}

// Load reads the run's history from the file and continues at its end. A damaged or missing file costs the run only its
// records.
func (h *metricsHook) Load(_ *hook.State, _ string, small json.RawMessage) error {
	var st metricsState
	if err := json.Unmarshal(small, &st); err != nil {
		return err
	}
	if st.Bytes < 0 {
		return fmt.Errorf("%s of %d bytes", h.path(), st.Bytes)
	}
	f, err := files.Open(h.path())
	lost := os.IsNotExist(err)
	if err != nil && !lost {
		return err
	}
	short := lost && st.Bytes > 0
	if !lost {
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		short = info.Size() < st.Bytes
	}
	h.size, h.sum = 0, 0
	var all history
	if !lost {
		err := files.Lines(io.LimitReader(f, st.Bytes), func(line []byte) error {
			if short && !files.Whole(line) {
				return nil
			}
			h.size += int64(len(line))
			h.sum = checksum.Add(h.sum, line)
			return all.add(line)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", h.path(), err)
		}
	}
	damaged := checksum.Digits(h.sum) != st.Sum
	switch {
	case lost && st.Bytes > 0:
		h.log("%s is gone: tables and plots begin with the epochs from here on, the run's weights are as they were", h.path())
	case short:
		h.log("%s is cut short, it had %d bytes: some of the steps and epochs before are missing there, the run's weights "+
			"are as they were", h.path(), st.Bytes)
	case damaged:
		h.log("%s is damaged: its lines of the steps before may be wrong, the run's weights are not", h.path())
	}
	if all.wrong != nil && !damaged {
		return fmt.Errorf("%s: %w", h.path(), all.wrong)
	}
	*h.history = all.list
	if h.idle {
		return nil
	}
	return h.open()
}

func (h *metricsHook) Close() error {
	if h.file == nil {
		return nil
	}
	err := errors.Join(h.flush(), h.file.Close())
	h.file = nil
	return err
}

// ReadHistory reads the records of the finished epochs from a run's folder. It ignores an incomplete last line, as a
// killed program leaves it.
func ReadHistory(dir string) ([]hook.EpochRecord, error) {
	path := filepath.Join(dir, metricsName)
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all history
	err = files.Lines(f, func(line []byte) error {
		if !files.Whole(line) {
			return nil
		}
		return errors.Join(all.add(line), all.wrong)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all.list, nil
}

// maxHistory bounds the epochs of a file, whose records take some 50 times as much memory as their shortest lines.
const maxHistory = 1 << 20

// history collects the records of epochs from lines. wrong is the error of the first line that is no record.
type history struct {
	list  []hook.EpochRecord
	lines int
	wrong error
}

func (h *history) add(line []byte) error {
	h.lines++
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	var rec hook.EpochRecord
	if err := json.Unmarshal(line, &rec); err != nil {
		h.wrong = cmp.Or(h.wrong, fmt.Errorf("line %d: %w", h.lines, err))
		return nil
	}
	if rec.Kind != "epoch" {
		return nil
	}
	if h.list = append(h.list, rec); len(h.list) > maxHistory {
		return fmt.Errorf("line %d: more than %d epochs", h.lines, maxHistory)
	}
	return nil
}

// verifyMetrics returns an error if metrics.jsonl does not match the newest checkpoint.
func verifyMetrics(out, newest string) error {
	b, err := files.Read(filepath.Join(newest, stateName))
	if err != nil {
		return err
	}
	var c checkpoint
	var st metricsState
	if json.Unmarshal(b, &c) != nil || json.Unmarshal(c.Hooks["metrics"], &st) != nil {
		return nil // reported with the checkpoint
	}
	path := filepath.Join(out, metricsName)
	f, err := files.Open(path)
	if os.IsNotExist(err) && st.Bytes == 0 {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	sum, n, err := checksum.Of(io.LimitReader(f, st.Bytes))
	if err != nil {
		return err
	}
	if n < st.Bytes || checksum.Digits(sum) != st.Sum {
		return fmt.Errorf("%s is damaged: its first %d bytes are not those that were written", path, st.Bytes)
	}
	return nil
}
