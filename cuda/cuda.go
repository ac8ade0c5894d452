package cuda

import (
	"errors"

	"onlinerna/cuda/check/datasheet"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/net"
	"onlinerna/cuda/number"
	"onlinerna/cuda/space"
)

// ErrNotBuilt says that the build has no GPU support, and how to build with it.
var ErrNotBuilt = errors.New("this build has no GPU support: build it with \"make gpu\" (needs gcc, no CUDA toolkit)")

// What package driver says of GPUs.
type (
	// Info describes a GPU.
	Info = driver.Info
	// Options of [Open]. The zero value is a good choice.
	Options = driver.Options
	// NoDeviceError says that there is no GPU of the number asked for, and which there are.
	NoDeviceError = driver.NoDeviceError
)

// Find is the number of the GPU whose UUID begins with name.
func Find(all []Info, name string) (ordinal int, err error) { return driver.Find(all, name) }

var (
	// ErrLost says that this process cannot use GPUs any more: end it, another one goes on from what is on disk.
	ErrLost = driver.ErrLost
	// ErrOutOfMemory is what every error of memory that was not there is.
	ErrOutOfMemory = driver.ErrOutOfMemory
)

// NetOptions are what a user chooses about the device for nets.
type NetOptions = net.Options

// Precision says what nets store and multiply.
type Precision = number.Precision

// The precisions.
const (
	Float32  = number.Float32
	TF32     = number.TF32
	BFloat16 = number.BFloat16
	Float16  = number.Float16
)

// ParsePrecision is the precision of a name.
func ParsePrecision(name string) (Precision, error) { return number.ParsePrecision(name) }

// SpaceOptions are the options of a [Space]. The zero value is a good choice.
type SpaceOptions = space.Options

// DefaultReserve is the [SpaceOptions].Reserve of 256 MiB.
const DefaultReserve = space.DefaultReserve

// Card is what a data sheet says of one.
type Card = datasheet.Card

// FindCard is the card of a key, as h100.
func FindCard(key string) (Card, error) { return datasheet.Find(key) }
