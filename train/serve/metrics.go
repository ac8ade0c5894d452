package serve

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// metrics count a server's work, for Prometheus.
type metrics struct {
	mu       sync.Mutex
	answers  map[int]int64 // requests by status
	requests histogram     // seconds
	batches  histogram     // images
	computed histogram     // seconds of a batch

	underWay, images, bodies, refused atomic.Int64
	model                             string
	start                             time.Time
}

// histogram counts values up to bounds, and all.
type histogram struct {
	bounds []float64
	counts []int64 // not cumulative; the last is of values beyond all bounds
	sum    float64
}

func newHistogram(bounds ...float64) histogram {
	return histogram{bounds: bounds, counts: make([]int64, len(bounds)+1)}
}

func (h *histogram) observe(x float64) {
	i := 0
	for i < len(h.bounds) && x > h.bounds[i] {
		i++
	}
	h.counts[i]++
	h.sum += x
}

func (m *metrics) init(s *Server) {
	seconds := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	m.answers, m.model, m.start = map[int]int64{}, s.p.Meta.Model, time.Now()
	for _, status := range []int{200, 400, 408, 413, 429, statusGone, 500, 503} {
		m.answers[status] = 0
	}
	m.requests, m.computed = newHistogram(seconds...), newHistogram(seconds...)
	var sizes []float64
	for k := 1; k < s.o.Batch; k *= 2 {
		sizes = append(sizes, float64(k))
	}
	m.batches = newHistogram(append(sizes, float64(s.o.Batch))...)
}

func (m *metrics) request(status int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[status]++
	m.requests.observe(took.Seconds())
}

func (m *metrics) batch(images int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches.observe(float64(images))
	m.computed.observe(took.Seconds())
}

// write writes the text format, version 0.0.4.
func (m *metrics) write(to io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := bufio.NewWriter(to)
	defer w.Flush()
	head := func(name, kind, help string) { fmt.Fprintf(w, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, help, kind) }
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	head("rna_requests_total", "counter", "Requests for predictions that were answered, by HTTP status.")
	for _, status := range slices.Sorted(maps.Keys(m.answers)) {
		fmt.Fprintf(w, "rna_requests_total{code=\"%d\"} %d\n", status, m.answers[status])
	}
	for _, h := range []struct {
		name, help string
		*histogram
	}{
		{"rna_request_duration_seconds", "Time from a request's header to its answer.", &m.requests},
		{"rna_batch_images", "Images of requests in a forward pass.", &m.batches},
		{"rna_batch_duration_seconds", "Time of a forward pass.", &m.computed},
	} {
		head(h.name, "histogram", h.help)
		all := int64(0)
		for i, n := range h.counts {
			all += n
			bound := "+Inf"
			if i < len(h.bounds) {
				bound = number(h.bounds[i])
			}
			fmt.Fprintf(w, "%s_bucket{le=\"%s\"} %d\n", h.name, bound, all)
		}
		fmt.Fprintf(w, "%s_sum %s\n%[1]s_count %[3]d\n", h.name, number(h.sum), all)
	}
	for _, g := range []struct {
		name, kind, help string
		value            int64
	}{
		{"rna_connections_refused_total", "counter", "Connections closed because too many were open.", m.refused.Load()},
		{"rna_requests_in_progress", "gauge", "Requests for predictions under way.", m.underWay.Load()},
		{"rna_images_in_progress", "gauge", "Images that are decoded, wait or are computed.", m.images.Load()},
		{"rna_request_body_bytes", "gauge", "Memory of the bodies of requests under way.", m.bodies.Load()},
	} {
		head(g.name, g.kind, g.help)
		fmt.Fprintf(w, "%s %d\n", g.name, g.value)
	}
	head("rna_model_info", "gauge", "The model, as a label.")
	fmt.Fprintf(w, "rna_model_info{model=%q} 1\n", m.model)
	head("process_start_time_seconds", "gauge", "Start of the server since the Unix epoch.")
	fmt.Fprintf(w, "process_start_time_seconds %s\n", number(float64(m.start.UnixMilli())/1000))
}
