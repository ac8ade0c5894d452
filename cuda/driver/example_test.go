//go:build gpu && cgo

package driver_test

import (
	"fmt"
	"log"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/nvrtc"
)

// Doubling numbers on the first GPU.
func Example() {
	c, err := driver.Open(0, driver.Options{})
	if err != nil {
		log.Fatal(err) // no driver or no GPU: the error says how to get one
	}
	defer c.Close()
	x := []float32{1, 2, 3}
	err = c.Do(func() error { // one hand-over to the owner thread
		m, err := c.Alloc(12)
		if err != nil {
			return err
		}
		defer m.Close()
		module, err := nvrtc.Compile(c, "twice.cu", `extern "C" __global__ void twice(float *x, long long n) {
			long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
			if (i < n) x[i] *= 2;
		}`)
		if err != nil {
			return err
		}
		defer module.Close()
		twice, err := module.Kernel("twice")
		if err != nil {
			return err
		}
		s := c.Stream()
		if err := s.CopyIn(m.All(), driver.Bytes(x)); err != nil {
			return err
		}
		if err := s.Launch(twice, driver.Dim{X: 1}, driver.Dim{X: 256}, 0, m.All(), int64(len(x))); err != nil {
			return err
		}
		return s.CopyOut(driver.Bytes(x), m.All())
	})
	fmt.Println(x, err) // [2 4 6] <nil>
}
