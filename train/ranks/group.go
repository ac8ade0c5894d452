package ranks

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"onlinerna/internal/parallel"
	"onlinerna/internal/text"
)

// DefaultTimeout is how long a rank waits for the others.
const DefaultTimeout = 10 * time.Minute

// Options configure a group.
type Options struct {
	World   World         // as the launcher describes it; zero: the engine decides
	Timeout time.Duration // of an operation; 0 means DefaultTimeout
}

// A Place is where a rank runs.
type Place struct {
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Node  int    `json:"node"`  // number of the host, in the order of its lowest rank
	Local int    `json:"local"` // number of the rank on its host
	CPUs  string `json:"cpus"`  // usable CPUs in the system's list format; "" if unknown
}

// A Group is the ranks that work as one. Only one goroutine at a time may use it. A nil *Group is a single process.
type Group struct {
	engine  Engine
	world   World
	timeout time.Duration
	places  []Place
	nodes   int
	locals  int // ranks on this host
	sharing int // ranks on this host with the same CPUs as this one
	beside  string
	at      atomic.Pointer[At]
}

// At is the ranks' current position in the run, for errors.
type At struct {
	Epoch, Step int    // 0: none
	What        string // such as "the evaluation"
}

func (a At) String() string {
	s := cmp.Or(a.What, "training")
	if a.Epoch > 0 {
		s += fmt.Sprintf(", epoch %d", a.Epoch)
	}
	if a.Step > 0 {
		s += fmt.Sprintf(", step %d", a.Step)
	}
	return s
}

// Join makes the group of all ranks of an engine and takes ownership of the engine. It fails if the launcher and the
// engine disagree about the number of ranks.
func Join(e Engine, o Options) (*Group, error) {
	g := &Group{engine: e, world: o.World, timeout: cmp.Or(o.Timeout, DefaultTimeout)}
	g.At(At{What: "the start"})
	if w := o.World; w.Size > 0 && w.Size != e.Size() {
		return nil, fmt.Errorf("%s started %d ranks, %s knows of %d: the launcher and the library do not belong together",
			w.Launcher, w.Size, e.Name(), e.Size())
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	own, err := json.Marshal(Place{Host: host, PID: os.Getpid(), CPUs: allowedCPUs()})
	if err != nil {
		return nil, err
	}
	all, err := g.Gather(own)
	if err != nil {
		return nil, err
	}
	hosts := map[string]int{} // number of ranks seen per host
	node := map[string]int{}
	for _, b := range all {
		var p Place
		if err := json.Unmarshal(b, &p); err != nil {
			return nil, err
		}
		p.Host = text.Printable(p.Host)
		if _, ok := node[p.Host]; !ok {
			node[p.Host] = len(node)
		}
		p.Node, p.Local = node[p.Host], hosts[p.Host]
		hosts[p.Host]++
		g.places = append(g.places, p)
	}
	g.nodes, g.locals = len(node), hosts[text.Printable(host)]
	for _, p := range g.places {
		if own := g.places[g.Rank()]; p.Host == own.Host && p.CPUs == own.CPUs {
			g.sharing++
		}
	}
	return g, nil
}

// allowedCPUs lists the CPUs that this process may use, if the system tells.
func allowedCPUs() string {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(list)
		}
	}
	return ""
}

// Threads is the number of compute threads of this rank: its share of the fast cores. Launchers either bind ranks to
// CPUs or let all ranks of a host share them.
func (g *Group) Threads() int { return g.share(parallel.Cores()) }

// Workers is the number of goroutines that decode images on this rank: its share of all CPUs that Go uses.
func (g *Group) Workers() int { return g.share(runtime.GOMAXPROCS(0)) }

// share divides n cores among the ranks with the same CPUs.
func (g *Group) share(n int) int {
	if g != nil {
		n /= g.sharing
	}
	return max(1, n)
}

// Rank is this process's number.
func (g *Group) Rank() int {
	if g == nil {
		return 0
	}
	return g.engine.Rank()
}

// Size is the number of ranks.
func (g *Group) Size() int {
	if g == nil {
		return 1
	}
	return g.engine.Size()
}

// First reports whether this is rank 0, the only one to write files and output.
func (g *Group) First() bool { return g.Rank() == 0 }

// Single reports whether there is only one rank.
func (g *Group) Single() bool { return g.Size() == 1 }

// Nodes is the number of hosts.
func (g *Group) Nodes() int {
	if g == nil {
		return 1
	}
	return g.nodes
}

// Locals is the number of ranks on this host.
func (g *Group) Locals() int {
	if g == nil {
		return 1
	}
	return g.locals
}

// Place is the host and the CPUs of a rank.
func (g *Group) Place(rank int) Place {
	if g == nil || rank >= len(g.places) { // before Join is done
		return Place{}
	}
	return g.places[rank]
}

// Engine names the engine; "" for a single process.
func (g *Group) Engine() string {
	if g == nil {
		return ""
	}
	if g.beside != "" {
		return g.beside + " and " + g.engine.Name()
	}
	return g.engine.Name()
}

// World describes how a launcher started the ranks; zero for a single process.
func (g *Group) World() World {
	if g == nil {
		return World{}
	}
	return g.world
}

// Timeout is the longest time that an operation may take.
func (g *Group) Timeout() time.Duration { return g.timeout }

// Name is the rank's name in errors.
func (g *Group) Name(rank int) string {
	if h := g.Place(rank).Host; h != "" {
		return fmt.Sprintf("rank %d on %s", rank, h)
	}
	return fmt.Sprintf("rank %d", rank)
}

// At records the ranks' current position for errors.
func (g *Group) At(a At) {
	if g != nil {
		b := a
		g.at.Store(&b)
	}
}

// Pending is a running operation. A nil *Pending is done.
type Pending struct {
	g    *Group
	what string
	list []Request
}

// Wait returns when the operation is done.
func (p *Pending) Wait() error {
	if p == nil {
		return nil
	}
	for _, r := range p.list {
		if err := p.g.wait(p.what, r); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) wait(what string, r Request) error {
	err := r.Wait(g.timeout)
	if errors.Is(err, ErrTimeout) {
		return g.Overdue(what)
	}
	return g.failed(what, err)
}

func (g *Group) failed(what string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s in %v: %w", what, *g.at.Load(), err)
	}
	return err
}

// Overdue is the error of an operation that missed its deadline: it asks which ranks are not waiting. Any goroutine may
// call it.
func (g *Group) Overdue(what string) *TimeoutError {
	e := &TimeoutError{What: what, At: *g.at.Load(), After: g.timeout, Waiting: g.Name(g.Rank())}
	for _, k := range g.engine.Missing(min(5*time.Second, g.timeout)) {
		e.Missing = append(e.Missing, g.Name(k))
	}
	return e
}

// Watch ends all ranks when work outside the engine, such as a sum between GPUs, fails with err or, with a nil err,
// misses its deadline. Any goroutine may call it.
func (g *Group) Watch(what string, err error) {
	if err == nil {
		err = g.Overdue(what)
	} else {
		err = g.failed(what, err)
	}
	g.Abort(err)
}

// Beside names the library that moves large vectors in place of the engine.
func (g *Group) Beside(name string) { g.beside = name }

// Sum32 starts summing vectors over the ranks in place, as one operation.
func (g *Group) Sum32(x []float32) *Pending {
	if g == nil {
		return nil
	}
	return &Pending{g, "a sum over the ranks", []Request{g.engine.Reduce32(x, Sum)}}
}

// Plain is the engine's plain sum, for comparison; nil if it has none.
func (g *Group) Plain() Plain {
	if g == nil {
		return nil
	}
	p, _ := g.engine.(Plain)
	return p
}

// Sum64 is Sum32 in float64.
func (g *Group) Sum64(x []float64) *Pending {
	if g == nil {
		return nil
	}
	return &Pending{g, "a sum over the ranks", []Request{g.engine.Reduce64(x, Sum)}}
}

// Max64 sets each element in place to its maximum over the ranks.
func (g *Group) Max64(x []float64) error {
	if g == nil {
		return nil
	}
	return g.wait("a largest value over the ranks", g.engine.Reduce64(x, Max))
}

// Broadcast copies one rank's bytes to all; the lengths must agree.
func (g *Group) Broadcast(b []byte, from int) error {
	if g == nil || len(b) == 0 {
		return nil
	}
	return g.wait("a broadcast", g.engine.Broadcast(b, from))
}

// Share sets *v on all ranks to rank 0's value, encoded as JSON.
func (g *Group) Share(v any) error {
	if g == nil {
		return nil
	}
	var b []byte
	var failed error
	if g.First() {
		b, failed = json.Marshal(v)
	}
	if err := g.Together(failed); err != nil {
		return err
	}
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
	if err := g.Broadcast(n[:], 0); err != nil {
		return err
	}
	if !g.First() {
		b = make([]byte, binary.LittleEndian.Uint64(n[:]))
	}
	if err := g.Broadcast(b, 0); err != nil || g.First() {
		return err
	}
	return json.Unmarshal(b, v)
}

// Gather returns the bytes of each rank, of any length.
func (g *Group) Gather(own []byte) ([][]byte, error) {
	if g == nil {
		return [][]byte{own}, nil
	}
	longest := []float64{float64(len(own))}
	if err := g.Max64(longest); err != nil {
		return nil, err
	}
	size := 8 + int(longest[0])
	mine := make([]byte, size)
	binary.LittleEndian.PutUint64(mine, uint64(len(own)))
	copy(mine[8:], own)
	all := make([]byte, size*g.Size())
	if err := g.wait("a gather", g.engine.Gather(all, mine)); err != nil {
		return nil, err
	}
	list := make([][]byte, g.Size())
	for k := range list {
		b := all[k*size : (k+1)*size]
		list[k] = b[8 : 8+binary.LittleEndian.Uint64(b)]
	}
	return list, nil
}

// GatherParts fills all with the parts of the ranks in order, each of len(own) bytes.
func (g *Group) GatherParts(all, own []byte) error {
	if g == nil {
		copy(all, own)
		return nil
	}
	if len(all) != g.Size()*len(own) {
		return fmt.Errorf("gather of %d parts of %d bytes in %d bytes", g.Size(), len(own), len(all))
	}
	return g.wait("a gather", g.engine.Gather(all, own))
}

// Barrier returns when all ranks have called it.
func (g *Group) Barrier() error { return g.Max64([]float64{0}) }

// said gives launchers time to forward a rank's message: MPICH's launchers drop it when told to end all ranks.
const said = 500 * time.Millisecond

// Abort prints err and ends all ranks; this process exits with status 1. It does not return if there is more than one
// process.
func (g *Group) Abort(err error) {
	if g == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "rna: %s: %v\n", g.Name(g.Rank()), err)
	time.Sleep(said)
	g.engine.Abort()
}

// Close ends the group once all ranks have called it.
func (g *Group) Close() error {
	if g == nil {
		return nil
	}
	return g.engine.Close()
}

// String describes the ranks, the hosts and the engine.
func (g *Group) String() string {
	if g == nil {
		return "1 process"
	}
	return fmt.Sprintf("%s on %s, %s", text.Count(g.Size(), "rank"), text.Count(g.nodes, "node"), g.Engine())
}
