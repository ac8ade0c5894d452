//go:build gpu && cgo

package dnn

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"onlinerna/cuda/driver"
)

// Settle times the plans, unless one is chosen already, takes the fastest and runs it once. A failing plan gives way to
// the next. Places are as for Run; results are overwritten. If no plan runs, Settle fails with [ErrNoPlan], or
// [driver.ErrOutOfMemory] if one lacked memory.
func (p *Plans) Settle(at []driver.Span, workspace driver.Span) error {
	return p.d.do(func() error {
		if err := p.Check(); err != nil {
			return err
		}
		if p.state == settled {
			return nil
		}
		measure := p.o.measures()
		err := p.settle(at, workspace, measure)
		if measure && errors.Is(err, driver.ErrOutOfMemory) { // the measurement has freed its memory
			p.short = true
			err = p.settle(at, workspace, false)
		}
		if errors.Is(err, driver.ErrOutOfMemory) { // so that nothing is chosen
			p.short = false
		}
		return err
	})
}

func (p *Plans) settle(at []driver.Span, workspace driver.Span, measuring bool) error {
	measure := measuring && p.state >= offered && len(p.all) > 0
	compiled := 0
	if measure {
		var end func()
		var err error
		if at, end, err = p.noise(at); err != nil {
			return err
		}
		defer end()
	}
	best, least := (*plan)(nil), time.Duration(0)
	slow := map[int]bool{} // engines that took many times as long as the best: other knobs don't mend that
	var first, full error
	// passed reports whether to try the next plan after one has failed.
	passed := func(err error) bool {
		if full == nil && errors.Is(err, driver.ErrOutOfMemory) {
			full, p.short = err, true
		}
		if first == nil {
			first = err
		}
		return !errors.Is(err, driver.ErrLost) && !errors.Is(err, errPlaces) && (measure || full == nil)
	}
	try := func(x *plan) error {
		if x.workspace > workspace.Bytes() { // more than planned
			return x.close()
		}
		took, err := time.Duration(1), error(nil)
		launch := func() error { return p.launch(x, at, workspace) }
		if measure {
			took, err = p.d.Time(launch, least)
		} else if err = launch(); err == nil {
			err = p.d.s.Synchronize()
		}
		if err != nil && !passed(err) {
			return err
		}
		p.tell(x.engine, x.workspace, timed(took, measure), err)
		slow[x.engine.Number] = slow[x.engine.Number] || err == nil && best != nil && took > max(hopeless, 8*least)
		if err == nil && x.engine.Compiled() {
			compiled++
		}
		if err == nil && (best == nil || took < least) {
			x, best, least = best, x, took
		}
		if x != nil {
			return x.close()
		}
		return nil
	}
	rest := p.all
	if x := p.chosen; x != nil {
		p.chosen = nil
		if err := try(x); err != nil {
			p.chosen = x
			return err
		}
		if full != nil && p.state >= offered { // without measuring it may run
			p.all = slices.Insert(slices.Clone(p.all), 0, x.engine)
		}
	}
	for _, e := range rest {
		if best != nil && (!measure || compiled >= mostCompiled) {
			break
		}
		if slow[e.Number] {
			continue
		}
		x, err := p.plan(e)
		if err != nil {
			if !passed(err) {
				p.chosen = best
				return err
			}
			p.tell(e, e.workspace, 0, err)
			continue
		}
		if err := try(x); err != nil {
			if p.chosen = best; x != best && !errors.Is(err, driver.ErrLost) {
				_ = x.close() // err is the cause
			}
			return err
		}
	}
	if best == nil && full == nil && p.state != listed { // the kept plan, or those made ahead, do not run here
		if err := p.list(); err != nil {
			return err
		}
		return p.settle(at, workspace, measuring)
	}
	if best == nil && full != nil {
		return full
	}
	p.all, p.chosen = nil, best
	if best == nil {
		if first == nil {
			first = fmt.Errorf("none fits a workspace of %d bytes", workspace.Bytes())
		}
		return fmt.Errorf("cuda: %w that runs for %s in %v, %v: %w", ErrNoPlan, p.g.Name, p.o.Precision, p.g, first)
	}
	p.state = settled
	if measure && !p.short && p.key != "" {
		keepPlan(p.d.c.Options(), choice{Key: p.key, Engine: best.engine, Plan: best.text()})
	}
	if i := slices.Index(p.h.made, best.engine.config); i >= 0 { // keep the descriptors of the plan
		p.h.made = slices.Delete(p.h.made, i, i+1)
		p.b.made = append(p.b.made, best.engine.config)
	}
	return p.h.release(0)
}

// noise returns places with random numbers in the inputs.
func (p *Plans) noise(at []driver.Span) (there []driver.Span, end func(), err error) {
	var operands []driver.Span
	var places []int
	var narrow []bool
	there = slices.Clone(at)
	for i, t := range p.g.inputs() {
		if t != nil && i < len(at) {
			operands, places, narrow = append(operands, at[i]), append(places, i), append(narrow, t.element != Float32)
		}
	}
	end, err = p.d.noise(operands, narrow)
	for i, place := range places {
		there[place] = operands[i]
	}
	return there, end, err
}
