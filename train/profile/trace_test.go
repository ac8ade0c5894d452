package profile

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestTraceIsJSON writes traces of no step and of one step.
func TestTraceIsJSON(t *testing.T) {
	p := &Profile{}
	for want := 2; want <= 4; want += 2 { // events
		var b strings.Builder
		if err := p.WriteTrace(&b); err != nil {
			t.Fatal(err)
		}
		var got struct{ TraceEvents []event }
		if err := json.Unmarshal([]byte(b.String()), &got); err != nil || len(got.TraceEvents) != want {
			t.Errorf("%d events, want %d: %v\n%s", len(got.TraceEvents), want, err, b.String())
		}
		at := time.Now()
		p.Begin(1, at)
		p.Waited(at, time.Second)
		p.End(at.Add(2 * time.Second))
	}
}
