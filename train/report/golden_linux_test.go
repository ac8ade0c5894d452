package report

import (
	"context"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"onlinerna/internal/golden"
	"onlinerna/internal/terminal/pty"
	"onlinerna/train/hook"
	"onlinerna/train/runs"
)

// shown returns the output of write on a terminal of the given width, with ␛ for escapes.
func shown(t *testing.T, columns int, write func(w io.Writer) error) string {
	t.Helper()
	for name, value := range map[string]string{"TERM": "xterm", "NO_COLOR": "", "CLICOLOR": "", "CLICOLOR_FORCE": ""} {
		t.Setenv(name, value)
	}
	p, err := pty.Open(columns)
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	const end = "<end>"
	all := make(chan string)
	go func() {
		var b strings.Builder
		for part := make([]byte, 4096); !strings.HasSuffix(b.String(), end); {
			n, err := p.Screen.Read(part)
			if b.Write(part[:n]); err != nil {
				break
			}
		}
		all <- strings.TrimSuffix(b.String(), end)
	}()
	if err := write(p.Terminal); err != nil {
		t.Error(err)
	}
	io.WriteString(p.Terminal, end)
	return strings.NewReplacer("\x1b", "␛", "\r\n", "\n").Replace(<-all)
}

// TestGoldenWidths: tables fit terminals from narrow to wide.
func TestGoldenWidths(t *testing.T) {
	all, families := examples(), families()
	labels, numbers := all["labels"], all["numbers"]
	long := runs.Run{Name: strings.Repeat("long/", 12) + "name", Config: numbers.Config, History: numbers.History}
	tables := map[string]func(w io.Writer) error{
		"table":        func(w io.Writer) error { return Table(w, all["plain"].Config, all["plain"].History) },
		"numbers":      func(w io.Writer) error { return Table(w, numbers.Config, numbers.History) },
		"compare":      func(w io.Writer) error { return Compare(w, GroupRuns(families["seeds"])) },
		"compare long": func(w io.Writer) error { return Compare(w, GroupRuns([]runs.Run{numbers, long})) },
		"runs":         func(w io.Writer) error { return RunTable(w, append(families["states"], long)) },
		"replay":       func(w io.Writer) error { return goldenReplay().Table(w) },
		"study":        func(w io.Writer) error { return demoStudy().Table(w) },
		"targets":      func(w io.Writer) error { return evaluation(&labels, 3).Targets.Print(w, true) },
		"progress": func(w io.Writer) error {
			p := NewProgress(w, w, false)
			p.Spec, p.Verbose = &labels.Config, true
			p.Log("a message with as many words as do not fit into a line of a terminal that has eighty columns")
			return p.AfterEpoch(context.Background(), &hook.State{Epoch: 8, Epochs: 8, Record: &labels.History[7]})
		},
	}
	var b strings.Builder
	for _, name := range sorted(tables) {
		for _, columns := range []int{36, 80} {
			heading(&b, "%s in %d columns", name, columns)
			b.WriteString(shown(t, columns, tables[name]))
		}
	}
	golden.Check(t, "widths.txt", b.String())
}

// TestGoldenBar: the bar of a run on a terminal, without the times.
func TestGoldenBar(t *testing.T) {
	got := shown(t, 100, func(w io.Writer) error {
		p := NewProgress(io.Discard, w, false)
		r := examples()["plain"]
		p.Spec, p.out = &r.Config, w
		s := &hook.State{Epochs: 8, Epoch: 1, Batch: 5, Batches: 20, Step: &hook.StepRecord{Loss: 2.34567}}
		step := func() {
			orError(w, p.AfterStep(context.Background(), s))
			time.Sleep(110 * time.Millisecond) // a bar is drawn at most every 100 ms
			p.bar.Add(0)
		}
		step()
		p.Log("an early message")
		step()
		p.began = time.Now().Add(-610 * time.Second)
		s.Epoch = 2
		step()
		s.Batch, s.Step.Loss = 10, 1.25
		step()
		p.Log("a message")
		step()
		s.Record = &r.History[1]
		return p.AfterEpoch(context.Background(), s)
	})
	var lines []string // of drawings with the same text the last one, since a slow machine draws more of them
	describes := regexp.MustCompile(`^[^%]*[^ 0-9%]`)
	for _, line := range strings.Split(regexp.MustCompile(`\[\d+s[^\]]*\]`).ReplaceAllString(got, "[…]"), "␛[J") {
		if n := len(lines); n > 0 && describes.FindString(lines[n-1]) == describes.FindString(line) {
			lines = lines[:n-1]
		}
		lines = append(lines, line)
	}
	golden.Check(t, "bar.txt", strings.Join(lines, "\n"))
}
