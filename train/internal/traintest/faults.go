package traintest

import (
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/rna"
	"onlinerna/train/hook"
)

// Faults count calls, and let one of them fail.
type Faults struct {
	Calls, Fail int    // the latter is the number of the call that fails, from 1 on; 0 for none
	What        string // the call that failed
}

// Call returns the error of a call.
func (f *Faults) Call(what string) error {
	if f.Calls++; f.Calls != f.Fail {
		return nil
	}
	f.What = what
	return fmt.Errorf("%s fails", what)
}

// Fragile is a device whose operations on vectors of float64 may fail.
type Fragile struct {
	device.Device
	*Faults
}

// NewVector implements device.Device.
func (d Fragile) NewVector(n int) (device.Vector, error) {
	if err := d.Call("new vector"); err != nil {
		return nil, err
	}
	v, err := d.Device.NewVector(n)
	if err != nil {
		return nil, err
	}
	return fragile{v, d.Faults}, nil
}

// NewSpace implements hook.Spacer.
func (d Fragile) NewSpace(dim int) (rna.Space, error) {
	if err := d.Call("new space"); err != nil {
		return nil, err
	}
	return rna.NewHost64(dim, 1)
}

// SpaceBytes implements hook.Spacer.
func (d Fragile) SpaceBytes(dim, vectors int) int64 { return int64(8 * dim * vectors) }

var _ hook.Spacer = Fragile{}

type fragile struct {
	device.Vector
	*Faults
}

var _ device.Elements[float64] = fragile{}

func (v fragile) Elements() []float64 { return v.Vector.(device.Elements[float64]).Elements() }

func (v fragile) Copy(x device.Vector) error {
	if err := v.Call("copy"); err != nil {
		return err
	}
	return v.Vector.Copy(x)
}

func (v fragile) Fill(a float64) error {
	if err := v.Call("fill"); err != nil {
		return err
	}
	return v.Vector.Fill(a)
}

func (v fragile) AddScaled(a float64, x device.Vector) error {
	if err := v.Call("add scaled"); err != nil {
		return err
	}
	return v.Vector.AddScaled(a, x)
}

func (v fragile) Lerp(a float64, x device.Vector) error {
	if err := v.Call("lerp"); err != nil {
		return err
	}
	return v.Vector.Lerp(a, x)
}

func (v fragile) Finite() (bool, error) {
	if err := v.Call("finite"); err != nil {
		return false, err
	}
	return v.Vector.Finite()
}

func (v fragile) ReadAt64(dst []float64, off int) error {
	if err := v.Call("read"); err != nil {
		return err
	}
	return v.Vector.ReadAt64(dst, off)
}

func (v fragile) WriteAt64(src []float64, off int) error {
	if err := v.Call("write"); err != nil {
		return err
	}
	return v.Vector.WriteAt64(src, off)
}
