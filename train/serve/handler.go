package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"onlinerna/data"
	"onlinerna/data/imaging"
	"onlinerna/internal/text"
	"onlinerna/train/evaluate"
)

// A refusal is the answer to a request that has no predictions.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

var (
	errBusy     = &refusal{http.StatusTooManyRequests, "as many images wait as may: try again later"}
	errMemory   = &refusal{http.StatusTooManyRequests, "requests under way take as much memory as they may: try again later"}
	errStopping = &refusal{http.StatusServiceUnavailable, "the server stops"}
	errLate     = &refusal{http.StatusServiceUnavailable, "the answer takes longer than a request may"}
)

// statusGone stands for the answer to a client that did not wait for it.
const statusGone = 499

// routes sets the paths. Prediction has two: that of the root is the address alone.
func (s *Server) routes() {
	s.mux = http.NewServeMux()
	s.route("/predict", http.MethodPost, s.handlePredict)
	s.route("/{$}", http.MethodPost, s.handlePredict)
	s.route("/healthz", http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
		if s.stopping.Load() {
			fail(w, errStopping.status, errStopping.text)
			return
		}
		write(w, http.StatusOK, map[string]string{"status": "ok", "model": s.p.Meta.Model})
	})
	s.route("/metrics", http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		s.metrics.write(w)
	})
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fail(w, http.StatusNotFound, usage) })
}

const usage = "POST an image to /predict; /healthz and /metrics answer GET"

// route sets the handler of a path for a method. Other methods get an error in JSON, which the mux writes as text.
func (s *Server) route(path, method string, handle http.HandlerFunc) {
	s.mux.HandleFunc(method+" "+path, handle)
	s.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", method)
		fail(w, http.StatusMethodNotAllowed, usage)
	})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func fail(w http.ResponseWriter, status int, why string) {
	write(w, status, map[string]string{"error": why})
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer) // the client may be gone
}

func (s *Server) handlePredict(w http.ResponseWriter, r *http.Request) {
	from := time.Now()
	s.metrics.underWay.Add(1)
	defer s.metrics.underWay.Add(-1)
	status := http.StatusInternalServerError
	defer func() { s.metrics.request(status, time.Since(from)) }() // of a panic, too, which ends the connection
	list, err := s.predict(w, r)
	if err == nil {
		status = http.StatusOK
		write(w, status, list)
		return
	}
	var no *refusal
	if errors.As(err, &no) {
		status = no.status
	}
	if r.Context().Err() != nil && (no == nil || no == errLate) { // the client is gone
		status = statusGone
		return
	}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusRequestTimeout:
		w.Header().Set("Connection", "close")
	}
	fail(w, status, text.PrintableLines(err.Error()))
}

// predict answers a request.
func (s *Server) predict(w http.ResponseWriter, r *http.Request) ([]evaluate.Prediction, error) {
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Timeout)
	defer cancel()
	top, err := s.top(r)
	switch {
	case err != nil:
		return nil, err
	case s.stopping.Load():
		return nil, errStopping
	case s.metrics.images.Load() >= int64(s.o.Queue): // before it takes the body
		return nil, errBusy
	}
	control, deadline := http.NewResponseController(w), time.Now().Add(s.o.Timeout)
	if err := control.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	set, claimed, err := s.read(w, r)
	defer func() { s.release(claimed) }()
	if err != nil {
		return nil, err
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	n := set.Len()
	if !s.slots.TryAcquire(int64(n)) {
		return nil, errBusy
	}
	s.metrics.images.Add(int64(n))
	defer func() {
		s.metrics.images.Add(int64(-n))
		s.slots.Release(int64(n))
	}()
	var jobs []*job
	var names []string
	for i := range n {
		j, err := s.enqueue(ctx, set, i)
		if err != nil {
			cancel() // the others need not be computed
			return nil, err
		}
		jobs, names = append(jobs, j), append(names, set.Name(i))
	}
	s.release(claimed)
	set, claimed = nil, 0 // the bodies are not needed any more
	var list []evaluate.Prediction
	for i, j := range jobs {
		select {
		case x := <-j.done:
			if x.err != nil && ctx.Err() == nil {
				return nil, x.err
			} else if x.err == nil && slices.ContainsFunc(x.probabilities, func(p float64) bool { return p-p != 0 }) {
				return nil, fmt.Errorf("%s: the net's outputs are not finite", names[i])
			} else if x.err == nil {
				list = append(list, s.p.Prediction(names[i], x.probabilities, top))
				continue
			}
		case <-ctx.Done():
		}
		return nil, errLate // or the client is gone
	}
	return list, nil
}

// top is the number of classes that a request asks for.
func (s *Server) top(r *http.Request) (int, error) {
	top := s.o.Top
	for name, values := range r.URL.Query() {
		n, err := strconv.Atoi(values[0])
		if name != "top" || err != nil || n < 1 || len(values) > 1 {
			return 0, refuse(http.StatusBadRequest, "query %s=%s: want top, a number of classes from 1, or none", name,
				values[0])
		}
		top = n
	}
	return top, nil
}

// enqueue decodes an image and queues it.
func (s *Server) enqueue(ctx context.Context, set *data.Unlabelled, i int) (*job, error) {
	var sampler *data.Sampler
	select {
	case sampler = <-s.samplers:
	case <-ctx.Done():
		return nil, errLate
	}
	s.coming.Add(1)
	defer s.coming.Add(-1) // after it is in the queue
	defer func() { s.samplers <- sampler }()
	one := set.Only(i)
	tr := s.transform
	if tr == nil {
		var err error
		if tr, err = s.p.Transform(one); err != nil {
			return nil, err
		}
	}
	image, err := sampler.Sample(one, 0, tr)
	s.drop(sampler.Dropped())
	switch {
	case errors.Is(err, data.ErrTooLarge), errors.Is(err, imaging.ErrPixels):
		return nil, refuse(http.StatusRequestEntityTooLarge, "%v", err)
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	j := &job{ctx, image, time.Now(), make(chan result, 1)}
	select {
	case s.queue <- j:
		return j, nil
	case <-ctx.Done():
		return nil, errLate
	}
}

// read reads the images of a request. The caller releases the claimed bytes.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (set *data.Unlabelled, claimed int64, err error) {
	if r.ContentLength > s.o.MaxBytes {
		return nil, 0, s.tooLong()
	}
	body := &body{s: s, from: http.MaxBytesReader(w, r.Body, s.o.MaxBytes)}
	set = data.NewUnlabelled(s.p.Channels)
	form, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if strings.HasPrefix(form, "multipart/") {
		r.Body = body
		err = s.readForm(set, r)
	} else {
		var b []byte
		if b, err = io.ReadAll(body); err == nil && len(b) == 0 {
			err = refuse(http.StatusBadRequest, "the body is empty: want an image")
		}
		set.AddEncoded("-", b)
	}
	var long *http.MaxBytesError
	var no *refusal
	switch {
	case err == nil || errors.As(err, &no):
	case errors.As(err, &long):
		err = s.tooLong()
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = refuse(http.StatusRequestTimeout, "the body takes longer than %v", s.o.Timeout)
	default:
		err = refuse(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	return set, body.claimed, err
}

func (s *Server) tooLong() error {
	return refuse(http.StatusRequestEntityTooLarge, "the body is longer than %s", text.Bytes(s.o.MaxBytes))
}

// readForm adds the files of a form to set.
func (s *Server) readForm(set *data.Unlabelled, r *http.Request) error {
	m, err := r.MultipartReader()
	if err != nil {
		return err
	}
	for {
		part, err := m.NextPart()
		if err == io.EOF && set.Len() > 0 {
			return nil
		} else if err == io.EOF {
			return refuse(http.StatusBadRequest, "the form has no file: want images")
		} else if err != nil {
			return err
		}
		if part.FileName() == "" {
			return refuse(http.StatusBadRequest, "the form's field %q is not a file: want images", part.FormName())
		}
		b, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		if set.AddEncoded(part.FileName(), b); set.Len() > s.o.Queue {
			return refuse(http.StatusRequestEntityTooLarge, "a request may have %s", text.Count(s.o.Queue, "image"))
		}
	}
}

// body reads a request's body, and claims memory for its bytes.
type body struct {
	s       *Server
	from    io.ReadCloser
	claimed int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if !b.s.bodies.TryAcquire(int64(n)) {
		return 0, errMemory
	}
	b.claimed += int64(n)
	b.s.metrics.bodies.Add(int64(n))
	return n, err
}

func (b *body) Close() error { return b.from.Close() }

func (s *Server) release(bytes int64) {
	s.metrics.bodies.Add(-bytes)
	s.bodies.Release(bytes)
}
