package cpu

import (
	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu/internal/kern"
)

// AlwaysWinograd makes d run all suitable convolutions by Winograd's algorithm.
func AlwaysWinograd(d *Device) { d.setWinograd(true) }

// setWinograd makes all suitable convolutions run by Winograd's algorithm, or none.
func (d *Device) setWinograd(on bool) {
	d.winograd, d.alwaysWinograd = on, true
	d.table = d.patterns()
}

// ByDefinition makes d, whose products are of bfloat16, run them in plain Go as AVX512_BF16 defines them, with step
// steps at a time.
func ByDefinition(d *Device, step int) {
	d.narrow, d.tiles = kern.PlainNarrow(step), nil
	d.table = d.patterns()
}

// ByTiles makes d, whose products are of bfloat16, run them in tiles as AMX does, in plain Go.
func ByTiles(d *Device) { d.setTiles(kern.PlainTiles()) }

// ByVectorTiles makes d run them so by AVX-512.
func ByVectorTiles(d *Device) { d.setTiles(kern.TilesByVectors()) }

// InParts makes d multiply float32 in parts of bfloat16 wherever possible: by the level's tiles if it has them, with
// their bits by AVX-512, or else as the definition does.
func InParts(d *Device, parts int) {
	t := kern.TilesFor(d.level)
	if t == nil && d.level.Vectors() == simd.AVX512 {
		t = kern.TilesByVectors()
	}
	if t == nil {
		t = kern.PlainTiles()
	}
	d.setParts(t.InParts(parts))
}

// InPartsByDefinition makes d do so in plain Go, and InPartsByVectors by AVX-512.
func InPartsByDefinition(d *Device, parts int) { d.setParts(kern.PlainTiles().InParts(parts)) }
func InPartsByVectors(d *Device, parts int)    { d.setParts(kern.TilesByVectors().InParts(parts)) }

func (d *Device) setParts(t *kern.Tiles) {
	d.tiles, d.alwaysParts = t, true
	d.table = d.patterns()
}

func (d *Device) setTiles(t *kern.Tiles) {
	d.tiles = t
	d.table = d.patterns()
}

// Portions makes d divide evaluation so that operands and results of an op have about the given number of elements.
func Portions(d *Device, elements int) { d.portion = elements }
