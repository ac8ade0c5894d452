package cpu

// AlwaysWinograd makes d run all convolutions by Winograd's algorithm that can.
func AlwaysWinograd(d *Device) { d.winograd, d.alwaysWinograd = true, true }
