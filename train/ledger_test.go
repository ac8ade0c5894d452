package train

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A ledger keeps the results of a study's runs in a file, a line each, so that a study that was stopped goes on.
type ledger struct {
	file  string
	until time.Time
	done  map[string]json.RawMessage
}

// keptResult is a line of a ledger.
type keptResult struct {
	Run    string          `json:"run"`
	Result json.RawMessage `json:"result"`
}

// openLedger opens the ledger in the folder ONLINERNA_RESULTS, by default that of the published results.
// ONLINERNA_MINUTES limits the time of new runs.
func openLedger(t *testing.T) *ledger {
	dir := os.Getenv("ONLINERNA_RESULTS")
	if dir == "" {
		dir = filepath.Join("testdata", "studies")
	}
	l := &ledger{file: filepath.Join(dir, "nets.jsonl"), until: time.Now().Add(1e6 * time.Hour),
		done: map[string]json.RawMessage{}}
	if m := os.Getenv("ONLINERNA_MINUTES"); m != "" {
		d, err := time.ParseDuration(m + "m")
		if err != nil {
			t.Fatal(err)
		}
		l.until = time.Now().Add(d)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(l.file)
	if os.IsNotExist(err) {
		return l
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var e keptResult
		if json.Unmarshal(lines.Bytes(), &e) == nil { // other lines are empty, or torn by the end of a process
			l.done[e.Run] = e.Result
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return l
}

// recall returns the result of a run: a kept one, or else that of f, which it keeps. It returns false if there is none
// and the time is over.
func recall[T any](t *testing.T, l *ledger, run string, f func() T) (result T, ok bool) {
	t.Helper()
	if text, kept := l.done[run]; kept {
		if err := json.Unmarshal(text, &result); err != nil {
			t.Fatalf("%s: %s: %v", l.file, run, err)
		}
		return result, true
	}
	if time.Now().After(l.until) {
		return result, false
	}
	result = f()
	text, err := json.Marshal(result)
	if err == nil {
		l.done[run] = text
		text, err = json.Marshal(keptResult{run, text})
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(l.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("\n" + string(text)); err != nil { // the last line may be torn
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return result, true
}

// TestLedger: results are kept, torn lines are not, and nothing runs once the time is over.
func TestLedger(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ONLINERNA_RESULTS", dir)
	runs := 0
	f := func() []float64 {
		runs++
		return []float64{1.5, float64(runs)}
	}
	l := openLedger(t)
	for range 2 {
		if x, ok := recall(t, l, "a", f); !ok || x[0] != 1.5 || x[1] != 1 {
			t.Fatal(x, ok)
		}
	}
	file, err := os.OpenFile(l.file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("\n" + `{"run":"b","resu`); err != nil {
		t.Fatal(err)
	}
	file.Close()
	t.Setenv("ONLINERNA_MINUTES", "0")
	l = openLedger(t)
	if x, ok := recall(t, l, "a", f); !ok || x[1] != 1 || runs != 1 {
		t.Fatal(x, ok, runs)
	}
	if _, ok := recall(t, l, "b", f); ok || runs != 1 {
		t.Fatal("ran after the end of the time")
	}
	t.Setenv("ONLINERNA_MINUTES", "")
	for range 2 {
		if x, ok := recall(t, openLedger(t), "b", f); !ok || x[1] != 2 {
			t.Fatal(x, ok)
		}
	}
}
