package profile

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// event is one of Chrome's trace events: a complete one, "X", or the name of a process or a thread, "M".
type event struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	At       json.Number    `json:"ts,omitempty"`  // microseconds
	Took     json.Number    `json:"dur,omitempty"` // microseconds
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Args     map[string]any `json:"args,omitempty"`
}

// thread is the trace's only thread: parts lie within their steps.
const thread = 1

// WriteTrace writes the profile as Chrome's trace events for chrome://tracing and Perfetto. Time starts with the first
// step, and the process is the rank.
func (p *Profile) WriteTrace(w io.Writer) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b) // one event a line
	about, err := json.Marshal(p.About)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "{\"displayTimeUnit\":\"ms\",\"otherData\":%s,\"traceEvents\":[\n", about)
	for i, m := range []event{
		{Name: "process_name", Phase: "M", Args: map[string]any{"name": fmt.Sprintf("rna train, rank %d", p.About.Rank)}},
		{Name: "thread_name", Phase: "M", Args: map[string]any{"name": "steps"}},
	} {
		m.Process, m.Thread = p.About.Rank, thread
		if i > 0 {
			b.WriteString(",")
		}
		if err := e.Encode(m); err != nil {
			return err
		}
	}
	spans := slices.SortedStableFunc(slices.Values(p.spans), func(a, b span) int { // enclosing spans come first
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(b.took, a.took))
	})
	for _, s := range spans {
		b.WriteString(",")
		v := event{Name: s.name, Category: s.category, Phase: "X", At: micro(s.at.Sub(p.began)), Took: micro(s.took),
			Process: p.About.Rank, Thread: thread}
		if s.step > 0 {
			v.Args = map[string]any{"step": s.step}
			if s.layer != "" {
				v.Args["layer"] = s.layer
			}
		}
		if err := e.Encode(v); err != nil {
			return err
		}
	}
	b.WriteString("]}\n")
	return b.Flush()
}

// micro writes microseconds with nanosecond digits, so that parts neither overlap nor leave their step.
func micro(d time.Duration) json.Number {
	return json.Number(fmt.Sprintf("%d.%03d", d.Nanoseconds()/1000, d.Nanoseconds()%1000))
}
