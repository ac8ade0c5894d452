package cpu

// AlwaysWinograd makes d run all convolutions by Winograd's algorithm that can.
func AlwaysWinograd(d *Device) { d.setWinograd(true) }

// setWinograd makes all convolutions that can run by Winograd's algorithm do so, or none.
func (d *Device) setWinograd(on bool) {
	d.winograd, d.alwaysWinograd = on, true
	d.table = d.patterns()
}
