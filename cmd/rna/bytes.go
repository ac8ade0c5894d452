package main

import "onlinerna/train/option"

// decodeMemory adds --decode-memory.
func (g group) decodeMemory(p *int64) {
	g.Var((*option.Bytes)(p), "decode-memory", optionHelp("decode-memory"))
}
