package bench

import (
	"fmt"
	"time"

	"onlinerna/nn/device"
)

// limits bound kernels on a device: the best of several measurements, since other load on the machine only lowers them.
type limits struct {
	peak  float64 // floating-point operations per second, 0 if the device cannot measure it
	triad float64 // bytes per second of v ← v + a·x, or the device's own measurement

	gauged device.Limits // of a device that measures itself
}

// triadElements is the size of each vector, larger than caches. Tests reduce it.
var triadElements = 32 << 20

const (
	triadRounds = 5
	// Rounds for the peak are short, so that even on a busy machine all threads have processors in some of them.
	peakRounds = 50
	peakTime   = 2 * time.Millisecond
)

// measure improves the limits.
func (l *limits) measure(dev device.Device) error {
	if d, ok := device.As[device.Gauge](dev); ok {
		return l.gauge(d)
	}
	if p, ok := device.As[device.Processor](dev); ok {
		for range peakRounds {
			l.peak = max(l.peak, p.Peak(peakTime))
		}
	}
	v, err := dev.NewVector(triadElements)
	if err != nil {
		return fmt.Errorf("measuring the bandwidth: %w", err)
	}
	defer v.Free()
	x, err := dev.NewVector(triadElements)
	if err != nil {
		return fmt.Errorf("measuring the bandwidth: %w", err)
	}
	defer x.Free()
	for i := range triadRounds + 1 {
		start := time.Now()
		if err = v.AddScaled(0.5, x); err == nil {
			err = dev.Sync()
		}
		if err != nil {
			return fmt.Errorf("measuring the bandwidth: %w", err)
		}
		if i > 0 { // the first touches fresh pages
			l.triad = max(l.triad, float64(3*v.Len()*dev.DType().Size())/time.Since(start).Seconds())
		}
	}
	return nil
}

// gauge asks a device for its limits, once: it is idle now, and a network takes its memory later.
func (l *limits) gauge(d device.Gauge) (err error) {
	if l.triad > 0 {
		return nil
	}
	if l.gauged, err = d.Limits(); err != nil {
		return err
	}
	if len(l.gauged.Products) > 0 {
		l.peak = l.gauged.Products[0].Speed
	}
	l.triad = l.gauged.Bandwidth.Speed
	return nil
}
