// Package serve answers HTTP requests for the classes of images.
//
// POST /predict takes an image as the body, or several as the files of a form, and answers with the JSON of rna
// predict. Images of requests that come close together are one batch of the net. GET /healthz says whether the server
// takes requests, GET /metrics has counters in the text format of Prometheus.
//
// An image's answer does not depend on the other images of its batch: see Batches.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"onlinerna/data"
	"onlinerna/data/augment"
	"onlinerna/internal/parallel"
	"onlinerna/train/evaluate"
)

// Options are the parameters of a Server. A zero field means the default.
type Options struct {
	Top          int           // classes of each image, 5
	Batch        int           // images a forward pass, 16
	Wait         time.Duration // the most that an image waits for others to share its batch, 5 ms
	Queue        int           // images that are decoded, wait or are computed; beyond it requests get 429; 256
	Connections  int           // open at a time; 1024
	MaxBytes     int64         // of a request's body; beyond it 413; 32 MiB
	Timeout      time.Duration // of a request: 408 if the body is late, 503 if the answer would be; 30 s
	Workers      int           // goroutines that decode; one a core
	DecodeMemory int64         // bytes of memory for decoding, see data.NewBudget; 512 MiB
	FastDecode   bool
	Log          io.Writer // for faults of the server, not of requests
}

// leastBodies is the memory for the bodies of all requests together, if requests are small.
const leastBodies = 256 << 20

// Server answers requests by a predictor.
type Server struct {
	o         Options
	p         *evaluate.Predictor
	transform augment.Transform // nil: as each image's size says
	sizes     []int
	alone     bool

	metrics  metrics
	mux      *http.ServeMux
	bodies   *semaphore.Weighted // bytes of bodies
	slots    *semaphore.Weighted // images
	samplers chan *data.Sampler
	queue    chan *job
	coming   atomic.Int64 // images that are being decoded
	dropped  atomic.Int64 // bytes of large images that the system has not got back
	dropping chan struct{}
	stopping atomic.Bool
}

// New returns a server. It plans and runs the net at each size of batch.
func New(p *evaluate.Predictor, o Options) (*Server, error) {
	if err := p.Net.CheckInputs(data.NewUnlabelled(p.Channels)); err != nil { // a request has images alone
		return nil, err
	}
	o.Top, o.Batch, o.Wait = cmp.Or(o.Top, 5), cmp.Or(o.Batch, 16), cmp.Or(o.Wait, 5*time.Millisecond)
	o.Queue, o.Connections = cmp.Or(o.Queue, 256), cmp.Or(o.Connections, 1024)
	o.MaxBytes, o.Timeout = cmp.Or(o.MaxBytes, 32<<20), cmp.Or(o.Timeout, 30*time.Second)
	o.Workers, o.DecodeMemory = cmp.Or(o.Workers, parallel.Cores()), cmp.Or(o.DecodeMemory, 512<<20)
	s := &Server{o: o, p: p, bodies: semaphore.NewWeighted(max(leastBodies, 8*o.MaxBytes)),
		slots: semaphore.NewWeighted(int64(o.Queue)), samplers: make(chan *data.Sampler, o.Workers),
		queue: make(chan *job, o.Queue), dropping: make(chan struct{}, 1)}
	budget := data.NewBudget(o.DecodeMemory, 1)
	for range o.Workers {
		s.samplers <- data.NewSampler(budget, o.Workers, o.FastDecode)
	}
	if p.Fixed() {
		var err error
		if s.transform, err = p.Transform(data.NewUnlabelled(p.Channels)); err != nil {
			return nil, err
		}
	}
	if err := s.probe(); err != nil {
		return nil, err
	}
	s.metrics.init(s)
	s.routes()
	return s, nil
}

// Batches says which sizes of batches have equal answers: an image's batch is filled up to one of them.
func (s *Server) Batches() string {
	if !s.alone {
		return "answers may differ in their last bits with the other images of a batch"
	}
	if len(s.sizes) == 1 {
		return fmt.Sprintf("batches of %d images, filled up: an answer does not depend on other images", s.o.Batch)
	}
	words := strings.ReplaceAll(strings.Trim(fmt.Sprint(s.sizes[:len(s.sizes)-1]), "[]"), " ", ", ")
	return fmt.Sprintf("batches of %s or %d images, filled up: an answer does not depend on other images", words, s.o.Batch)
}

// Serve answers requests on l until ctx ends. Then it takes no more, and answers those under way for at most the
// timeout of a request. It returns an error of the net, which ends it, too.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	server := &http.Server{
		Handler: s, ErrorLog: log.New(cmp.Or(s.o.Log, io.Discard), "rna: ", 0), MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: min(10*time.Second, s.o.Timeout), IdleTimeout: 2 * s.o.Timeout,
		WriteTimeout: 2 * s.o.Timeout, // from the end of the header on: one for the body, one for the answer
	}
	quit := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { s.batches(quit, cancel) })
	group.Go(func() { s.giveBack(quit) })
	group.Go(func() {
		cancel(server.Serve(&limited{Listener: l, most: int64(s.o.Connections), refused: &s.metrics.refused}))
	})
	<-ctx.Done()
	s.stopping.Store(true)
	last, stop := context.WithTimeout(context.Background(), s.o.Timeout)
	defer stop()
	if server.Shutdown(last) != nil {
		server.Close()
	}
	close(quit)
	group.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// mostDropped is the memory of large images that may wait for the garbage collector.
const mostDropped = 64 << 20

// drop notes that large images left memory to the garbage collector.
func (s *Server) drop(bytes int64) {
	if bytes > 0 && s.dropped.Add(bytes) > mostDropped {
		select {
		case s.dropping <- struct{}{}:
		default:
		}
	}
}

// giveBack returns the memory of large images to the system until quit closes, a second after they are done: then
// nothing holds it, and images that come one behind the other share a collection. By itself the garbage collector keeps
// it for minutes while small images come.
func (s *Server) giveBack(quit <-chan struct{}) {
	for {
		select {
		case <-quit:
			return
		case <-s.dropping:
		}
		select {
		case <-quit:
			return
		case <-time.After(time.Second):
		}
		s.dropped.Store(0)
		debug.FreeOSMemory()
	}
}

// limited closes connections beyond the most that may be open.
type limited struct {
	net.Listener
	open    atomic.Int64
	most    int64
	refused *atomic.Int64
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &counted{Conn: c, closed: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		l.refused.Add(1)
		c.Close()
	}
}

type counted struct {
	net.Conn
	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}
