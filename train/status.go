package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"onlinerna/data"
	"onlinerna/internal/checksum"
	"onlinerna/internal/files"
	"onlinerna/internal/machine"
	"onlinerna/nn/device"
	"onlinerna/train/hook"
	"onlinerna/train/internal/store"
)

// failureName is the file in a run's folder that records the error which ended it. A resumed run removes it.
const failureName = "failure.json"

// stoppedName is the file in the folder of a run that its program stopped before its last epoch, as a sweep does. A run
// that goes on removes it.
const stoppedName = "stopped.json"

// Failure is the error that ended a run.
type Failure struct {
	Error    string `json:"error"`
	Epoch    int    `json:"epoch"`    // in which it failed
	Diverged bool   `json:"diverged"` // the loss or the weights were not finite: a resumed run fails again
}

// State tells whether a run is going on, and how it ended.
type State string

// The states of a run. An interrupted run was ended by a signal, or killed, before its last epoch. A stopped run was
// ended there by its program, as a sweep does. Both can be resumed.
const (
	Running     State = "running"
	Done        State = "done"
	Stopped     State = "stopped"
	Interrupted State = "interrupted"
	Failed      State = "failed"
)

// States lists all states.
func States() []State { return []State{Running, Done, Stopped, Interrupted, Failed} }

// ReadState returns the state of the run in a folder, given its Spec and its history, by the folder's lock and files.
// The failure belongs to a failed run, and is nil for others.
func ReadState(dir string, c Spec, history []hook.EpochRecord) (State, *Failure, error) {
	if store.Held(filepath.Join(dir, checkpointDir)) {
		return Running, nil, nil
	}
	if n := len(history); n > 0 && (history[n-1].Epoch >= c.Epochs || c.exhausted(history[n-1].Epoch,
		history[n-1].Best)) && files.IsRegular(filepath.Join(dir, finalName)) {
		return Done, nil, nil
	}
	b, err := files.Read(filepath.Join(dir, failureName))
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(history) > 0 && stoppedAt(dir) == history[len(history)-1].Epoch:
		return Stopped, nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return Interrupted, nil, nil
	case err != nil:
		return "", nil, err
	}
	f := &Failure{}
	if json.Unmarshal(b, f) != nil { // cut short by a power cut
		f.Error = "unknown error"
	}
	return Failed, f, nil
}

// stopRecord is the content of stoppedName.
type stopRecord struct {
	Epoch int `json:"epoch"` // the last that is finished
}

// recordStop records that the program stopped the run.
func (r *Run) recordStop() error {
	if r.Resolved.Out == "" || !r.Ranks.First() {
		return nil
	}
	b, err := json.Marshal(stopRecord{r.pos.Epoch - 1})
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(r.Resolved.Out, stoppedName), append(b, '\n'))
}

// stoppedAt returns the epoch at which a program stopped the run in a folder, 0 for none.
func stoppedAt(dir string) int {
	var s stopRecord
	if b, err := files.Read(filepath.Join(dir, stoppedName)); err != nil || json.Unmarshal(b, &s) != nil {
		return 0
	}
	return s.Epoch
}

// finalName is the file that a run writes last.
const finalName = "final.safetensors"

// ended records the error of a run that fails, and forgets that of an earlier attempt.
func (r *Run) ended(err error) {
	if !r.folder.begun || r.folder.locked == nil || !r.Ranks.First() {
		return
	}
	path := filepath.Join(r.Resolved.Out, failureName)
	os.Remove(filepath.Join(r.Resolved.Out, stoppedName))
	if err == nil || errors.Is(err, ErrInterrupted) {
		os.Remove(path)
		return
	}
	b, _ := json.Marshal(Failure{Error: err.Error(), Epoch: r.pos.Epoch, Diverged: errors.As(err, new(*DivergedError))})
	if werr := files.Write(path, append(b, '\n')); werr != nil {
		r.log("the failure is not recorded: %v", werr)
	}
}

// sessionsName is the file in a run's folder with a line for each process that trained it.
const sessionsName = "sessions.jsonl"

// Session describes a process that trained a run, from a position on.
type Session struct {
	Sum        string    `json:"crc32c"` // of the file up to this line's end, computed with zeros in this place
	Started    time.Time `json:"started"`
	Epoch      int       `json:"epoch"` // in which it began
	Step       int       `json:"step"`  // steps before it
	Device     string    `json:"device"`
	Card       string    `json:"card,omitempty"` // the name of a GPU
	Precision  string    `json:"precision,omitempty"`
	Ranks      int       `json:"ranks"`
	EpochSteps int       `json:"epoch_steps"` // of the optimiser
	Chosen     []Choice  `json:"chosen"`      // options whose values differ from their defaults, but for device and out
	machine.Machine
}

// Choice is an option with its value, as on a command line.
type Choice struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sumOfSession is the place of the checksum in a line.
const sumOfSession = len(`{"crc32c":"`)

// recordSession appends this process to the run's sessions. A failure does not end the run.
func (r *Run) recordSession() {
	if r.recorded || r.Resolved.Out == "" || !r.Ranks.First() {
		return
	}
	r.recorded = true
	s := Session{Sum: checksum.Zeros, Started: time.Now().UTC().Truncate(time.Second), Epoch: r.pos.Epoch, Step: r.pos.Steps,
		Device: r.Device.Name(), Precision: r.Resolved.Precision, Ranks: r.Ranks.Size(), Chosen: r.chosen,
		EpochSteps: r.engine.epochSteps(), Machine: machine.This()}
	if d, ok := device.As[interface {
		device.Device
		Card() string
	}](r.Device); ok {
		s.Card = d.Card()
	}
	b, err := json.Marshal(s)
	if err == nil {
		r.logged.open(r.Resolved.Out)
		err = appendSession(filepath.Join(r.Resolved.Out, sessionsName), b)
	}
	if err != nil {
		r.log("the machine and the options of this process are not recorded: %v", err)
	}
}

// appendSession appends a line to a file, also after a line that was cut short.
func appendSession(path string, line []byte) error {
	before, err := files.Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if n := len(before); n > 0 && before[n-1] != '\n' {
		before = append(before, '\n')
	}
	line = append(line, '\n')
	checksum.Seal(sumOfSession, before, line)
	return files.Write(path, append(before, line...))
}

// verifySessions compares a run's sessions with their checksums. Older programs wrote lines without: summed is false if
// there are no others.
func verifySessions(path string) (summed bool, err error) {
	b, err := files.Read(path)
	if err != nil {
		return true, err
	}
	at, lines := 0, 0
	for line := range bytes.Lines(b) {
		lines++
		switch {
		case !summed && bytes.HasPrefix(line, []byte(`{"started":"`)): // by an older program
		case !bytes.HasPrefix(line, []byte(`{"crc32c":"`)) || !checksum.Sealed(sumOfSession, b[:at], line):
			return true, fmt.Errorf("%s is damaged: the checksum of line %d differs", path, lines)
		default:
			summed = true
		}
		at += len(line)
	}
	return summed, nil
}

// ReadSessions reads the processes that trained the run in a folder. A run of an older version has none.
func ReadSessions(dir string) (list []Session, err error) {
	b, err := files.Read(filepath.Join(dir, sessionsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(b) {
		var s Session
		if json.Unmarshal(line, &s) == nil { // else cut short
			list = append(list, s)
		}
	}
	return list, err
}

// logName is the file in a run's folder with its messages.
const logName = "log.txt"

// logbook writes a run's messages to its folder, also those from before there was one.
type logbook struct {
	mu   sync.Mutex
	path string
	kept []byte
}

// add takes a message. A failure does not end the run.
func (l *logbook) add(message string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = fmt.Appendf(l.kept, "%s %s\n", time.Now().UTC().Format(time.RFC3339), strings.ReplaceAll(message, "\n", " "))
	l.flush()
}

// open begins to write into a folder.
func (l *logbook) open(dir string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.path = filepath.Join(dir, logName)
	l.flush()
}

func (l *logbook) flush() {
	if l.path == "" || len(l.kept) == 0 {
		return
	}
	if f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err == nil {
		_, _ = f.Write(l.kept)
		f.Close()
	}
	l.kept = nil
}

// maxLog bounds the messages that ReadLog returns, in bytes.
const maxLog = 1 << 20

// ReadLog reads the last messages of the run in a folder, each with its time; none if it has none.
func ReadLog(dir string) ([]string, error) {
	f, err := files.Open(filepath.Join(dir, logName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > maxLog {
		_, _ = f.Seek(-maxLog, io.SeekEnd)
	}
	b, err := io.ReadAll(f)
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' }), err
}

// chosenOf lists the set options of a Spec that would resolve to another value if they were not set. resolved is the
// Spec with all values; resolve fills in those of a trial. ofImages judges options that opened the set.
func chosenOf(given, resolved *Spec, set data.Dataset, resolve func(c *Resolved) error) (list []Choice) {
	for _, x := range table.Settings(given) {
		if x.Name == "device" || x.Name == "out" {
			continue
		}
		o := table.Find(x.Name)
		trial := Resolved{Spec: *given}
		o.Unset(&trial.Spec)
		usual := o.Default == x.String() || x.Name == "precision" && x.Text == device.Usual(resolved.Device)
		other, known := ofImages(given, x.Name, set)
		if known && !other || !known && (usual || resolve(&trial) == nil && o.Text(&trial.Spec) == o.Text(resolved)) {
			continue
		}
		list = append(list, Choice{x.Name, x.String()})
	}
	return list
}

// ofImages judges an option by which a set was opened, so that the set itself does not tell its default. other reports
// whether the value differs from the default or may do so. The default classes are those with images, sorted.
func ofImages(given *Spec, name string, set data.Dataset) (other, known bool) {
	switch name {
	case "task":
		return given.Task != data.Classification, true
	case "classes":
		if !slices.Contains(given.Given, name) || given.Data == "glyphs" {
			return false, true
		}
		return given.Task == data.Regression || !slices.IsSorted(given.Classes) ||
			slices.Contains(data.ClassCounts(set), 0), true
	}
	return false, false
}

// A FailedError tells where a run failed, and which state of it is saved.
type FailedError struct {
	Epoch, Step int    // current, counted from 1; Step is 0 after the epoch's last step
	Checkpoint  string // the last saved state, "" if there is none
	Err         error
}

func (e *FailedError) Error() string {
	where := fmt.Sprintf("epoch %d, step %d", e.Epoch, e.Step)
	if e.Step == 0 {
		where = fmt.Sprintf("after the steps of epoch %d", e.Epoch)
	}
	s := fmt.Sprintf("%s: %v", where, e.Err)
	if oom := outOfMemory(nil); errors.As(e.Err, &oom) && oom.OutOfMemory() {
		s += "; another process may have taken the memory: a smaller batch needs less"
	}
	if e.Checkpoint != "" {
		s += "; the state saved last is in " + e.Checkpoint
	}
	return s
}

func (e *FailedError) Unwrap() error { return e.Err }

// outOfMemory is implemented by errors of a device with too little memory.
type outOfMemory interface {
	error
	OutOfMemory() bool
}

// failed adds the run's position to an error. DivergedError already has it.
func (r *Run) failed(err error) error {
	if errors.As(err, new(*DivergedError)) {
		return err
	}
	e := &FailedError{Epoch: r.pos.Epoch, Step: r.pos.Steps + 1, Checkpoint: r.folder.savedState(Common(err)), Err: err}
	if r.pos.Batch >= r.in.train.Steps() {
		e.Step = 0
	}
	return e
}
