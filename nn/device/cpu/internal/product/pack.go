package product

// pack writes a panel.
func (k *tiledKernel) pack(worker, block int) {
	p := k.pieces[block]
	g := &k.targets[p.target]
	n := k.columns(p.panel)
	width := k.set.Vectors(n) * k.set.Lanes
	dst := k.packed[k.panel(g, p.group, p.panel):][:g.deep*width]
	if k.set.Tiles != nil {
		k.packTiles(g, p, dst, k.args[worker].room[:], n, width)
		return
	}
	clear(dst[:width])
	if k.bias != nil {
		for to := dst[:n]; len(to) > 0; { // again for each of the folded pixels
			to = to[copy(to, k.bias[p.group*k.rows+p.panel*k.set.Columns():]):]
		}
	}
	dst = dst[width:]
	w := k.weights[p.group*k.weightGroup+p.panel*k.set.Columns()*k.weightRow:]
	for c := 0; c < g.channels; c += g.chunk {
		channels := min(g.chunk, g.channels-c)
		whole := g.narrow.Whole(channels)
		for _, t := range g.taps {
			clear(dst[channels*width : whole*width])
			if k.weightsOf != nil {
				k.packFolded(dst, width, t, c, channels)
				dst = dst[whole*width:]
				continue
			}
			from := w[t.weight*k.weightTap+c*k.weightChannel:]
			if k.weightRow == 1 {
				_ = from[(channels-1)*k.weightChannel+n-1]
				k.set.Copy(&dst[0], &from[0], channels, n, 4*width, 4*k.weightChannel)
			} else {
				transposeWeights(dst, width, from, k.weightRow, n, channels)
			}
			dst = dst[whole*width:]
		}
	}
	panel := k.packed[k.panel(g, p.group, p.panel):][:g.deep*width]
	k.scale(panel, width, p.group, p.panel*k.set.Columns())
	switch {
	case g.narrow != nil:
		narrowRows(g.narrow, panel[width:], width, g.depth)
	case g.pairs(k.set, n):
		k.set.Interleave(&panel[width], g.depth/2)
	}
}

// transposeWeights writes n rows of the given length, stride apart, as columns, and zeros up to width columns.
func transposeWeights(dst []float32, width int, src []float32, stride, n, length int) {
	j := 0
	for ; j+4 <= n; j += 4 {
		s0, s1 := src[j*stride:][:length], src[(j+1)*stride:][:length]
		s2, s3 := src[(j+2)*stride:][:length], src[(j+3)*stride:][:length]
		d := dst[j:]
		for c, v := range s0 {
			e := d[c*width:][:4]
			e[0], e[1], e[2], e[3] = v, s1[c], s2[c], s3[c]
		}
	}
	for ; j < width; j++ {
		if j >= n {
			for c := range length {
				dst[c*width+j] = 0
			}
			continue
		}
		for c, v := range src[j*stride:][:length] {
			dst[c*width+j] = v
		}
	}
}
