package rankstest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"onlinerna/train/ranks"
)

// Suite checks a group's operations on all of its ranks.
func Suite(g *ranks.Group) error {
	for _, c := range []struct {
		name string
		f    func(*ranks.Group) error
	}{
		{"places", places}, {"sums", sums}, {"sums under way", underWay}, {"garbage", garbage}, {"largest", largest},
		{"broadcast", broadcasts}, {"gather", gathers}, {"decisions", decisions}, {"comparison", comparison},
	} {
		g.At(ranks.At{What: c.name})
		if err := c.f(g); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func places(g *ranks.Group) error {
	seen := map[string]bool{}
	for k := range g.Size() {
		p := g.Place(k)
		at := fmt.Sprint(p.Host, p.Local)
		if p.Host == "" || p.PID == 0 || p.Node < 0 || p.Node >= g.Nodes() || seen[at] {
			return fmt.Errorf("rank %d is at %+v", k, p)
		}
		seen[at] = true
	}
	if n := g.Threads(); n < 1 || n > runtime.GOMAXPROCS(0) {
		return fmt.Errorf("%d threads", n)
	}
	if g.Engine() == "" || !strings.Contains(g.String(), g.Engine()) {
		return fmt.Errorf("the group calls itself %q", g)
	}
	return nil
}

// number is element i of rank k: small integers, so that sums are exact in any order.
func number(k, i int) float64 { return float64((i*7+k*k*3)%101 - 50) }

func total(g *ranks.Group, i int) (sum float64) {
	for k := range g.Size() {
		sum += number(k, i)
	}
	return sum
}

func sums(g *ranks.Group) error {
	for _, n := range []int{1, 2, 3, 17, 1000, 65537, 1<<20 + 1} {
		x, y := make([]float32, n), make([]float64, n)
		for i := range x {
			y[i] = number(g.Rank(), i)
			x[i] = float32(y[i])
		}
		if err := g.Sum32(x).Wait(); err != nil {
			return err
		}
		if err := g.Sum64(y).Wait(); err != nil {
			return err
		}
		for i := range x {
			if want := total(g, i); float64(x[i]) != want || y[i] != want {
				return fmt.Errorf("element %d of %d: %g and %g, want %g", i, n, x[i], y[i], want)
			}
		}
	}
	// Fractions: all ranks get identical bits.
	x := make([]float32, 10007)
	for i := range x {
		x[i] = 1 / float32(1+i*g.Size()+g.Rank())
	}
	if err := g.Sum32(x).Wait(); err != nil {
		return err
	}
	var b []byte
	for _, v := range x {
		u := math.Float32bits(v)
		b = append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	all, err := g.Gather(b)
	if err != nil {
		return err
	}
	for k, c := range all {
		if !bytes.Equal(c, b) {
			return fmt.Errorf("%s has other bits of a sum", g.Name(k))
		}
	}
	return nil
}

// underWay starts many sums at once and waits for them in another order.
func underWay(g *ranks.Group) error {
	const many = 20
	var list [many][]float32
	var pending [many]*ranks.Pending
	for k := range list {
		list[k] = make([]float32, 1<<(k%18))
		for i := range list[k] {
			list[k][i] = float32(number(g.Rank(), i+k))
		}
		pending[k] = g.Sum32(list[k])
	}
	for k := many - 1; k >= 0; k-- {
		if err := pending[k].Wait(); err != nil {
			return err
		}
		for i, x := range list[k] {
			if want := total(g, i+k); float64(x) != want {
				return fmt.Errorf("sum %d, element %d: %g, want %g", k, i, x, want)
			}
		}
	}
	return nil
}

// garbage sums while the garbage collector runs.
func garbage(g *ranks.Group) error {
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				keep := make([][]byte, 64)
				for i := range keep {
					keep[i] = make([]byte, 1<<14)
				}
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for n := range 8 {
		x := make([]float32, 50_000+n)
		for i := range x {
			x[i] = float32(number(g.Rank(), i))
		}
		if err := g.Sum32(x).Wait(); err != nil {
			return err
		}
		for i := range x {
			if want := total(g, i); float64(x[i]) != want {
				return fmt.Errorf("element %d: %g, want %g", i, x[i], want)
			}
		}
	}
	return nil
}

func largest(g *ranks.Group) error {
	x := []float64{float64(g.Rank()), -float64(g.Rank()), 7}
	if err := g.Max64(x); err != nil {
		return err
	}
	if x[0] != float64(g.Size()-1) || x[1] != 0 || x[2] != 7 {
		return fmt.Errorf("largest of the ranks: %v", x)
	}
	return nil
}

func broadcasts(g *ranks.Group) error {
	for from := range g.Size() {
		b := bytes.Repeat([]byte{byte(g.Rank() + 1)}, 100_001)
		if err := g.Broadcast(b, from); err != nil {
			return err
		}
		if !bytes.Equal(b, bytes.Repeat([]byte{byte(from + 1)}, len(b))) {
			return fmt.Errorf("broadcast: not rank %d's bytes", from)
		}
	}
	v := map[string]int{"rank": g.Rank()}
	if err := g.Share(&v); err != nil || v["rank"] != 0 {
		return fmt.Errorf("shared: %v, %v", v, err)
	}
	return nil
}

func gathers(g *ranks.Group) error {
	word := func(k int) string { return strings.Repeat(string(rune('a'+k)), k*k*1000) } // rank 0's word is empty
	all, err := g.Gather([]byte(word(g.Rank())))
	if err != nil {
		return err
	}
	for k, b := range all {
		if string(b) != word(k) {
			return fmt.Errorf("rank %d's %d bytes came as %d", k, len(word(k)), len(b))
		}
	}
	parts := make([]byte, 3*g.Size())
	if err := g.GatherParts(parts, bytes.Repeat([]byte{byte(g.Rank())}, 3)); err != nil {
		return err
	}
	for i, b := range parts {
		if int(b) != i/3 {
			return fmt.Errorf("parts: %v", parts)
		}
	}
	return g.Barrier()
}

func decisions(g *ranks.Group) error {
	last := g.Size() - 1
	if any, err := g.Any(g.Rank() == last); err != nil || !any {
		return fmt.Errorf("a flag on one rank: %v, %v", any, err)
	}
	if any, err := g.Any(false); err != nil || any {
		return fmt.Errorf("no flag: %v, %v", any, err)
	}
	if err := g.Together(nil); err != nil {
		return err
	}
	mine := errors.New("the folder is missing")
	var err error
	if g.Rank() == last {
		err = mine
	}
	err = g.Together(err)
	var r *ranks.RankError
	if !errors.As(err, &r) || r.Rank != last || r.Err.Error() != mine.Error() ||
		!strings.Contains(err.Error(), g.Name(last)) {
		return fmt.Errorf("an error in common is %v", err)
	}
	if (g.Rank() == last) != errors.Is(err, mine) {
		return errors.New("only the rank itself has the error's value")
	}
	return nil
}

func comparison(g *ranks.Group) error {
	if err := g.Compare(ranks.Fact{Name: "version", Value: "1"}, ranks.Fact{Name: "parameters", Value: "7"}); err != nil {
		return err
	}
	last := g.Size() - 1
	if last == 0 {
		return nil
	}
	seed := "1"
	if g.Rank() == last {
		seed = "2"
	}
	err := g.Compare(ranks.Fact{Name: "version", Value: "1"}, ranks.Fact{Name: "seed", Value: seed})
	want := fmt.Sprintf("seed: %s has 2, %s has 1", g.Name(last), g.Name(0))
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "version") ||
		!ranks.Common(err) {
		return fmt.Errorf("comparison: %v, want %q", err, want)
	}
	return nil
}
