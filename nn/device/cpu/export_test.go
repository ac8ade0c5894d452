package cpu

import "onlinerna/nn/device/cpu/internal/kern"

// AlwaysWinograd makes d run all convolutions by Winograd's algorithm that can.
func AlwaysWinograd(d *Device) { d.setWinograd(true) }

// setWinograd makes all convolutions that can run by Winograd's algorithm do so, or none.
func (d *Device) setWinograd(on bool) {
	d.winograd, d.alwaysWinograd = on, true
	d.table = d.patterns()
}

// ByDefinition makes d, whose products are of bfloat16, run them as AVX512_BF16 is defined to, in plain Go, so many steps at a time.
func ByDefinition(d *Device, step int) {
	d.narrow = kern.PlainNarrow(step)
	d.table = d.patterns()
}
