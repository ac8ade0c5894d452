package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// The opcodes of pickles of checkpoints. Those that refer to registries or to buffers outside are not among them.
const (
	opMark            = '('
	opStop            = '.'
	opPop             = '0'
	opPopMark         = '1'
	opBinFloat        = 'G'
	opInt             = 'I'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opBinInt2         = 'M'
	opNone            = 'N'
	opBinPersID       = 'Q'
	opReduce          = 'R'
	opBinString       = 'T'
	opShortBinString  = 'U'
	opBinUnicode      = 'X'
	opAppend          = 'a'
	opBuild           = 'b'
	opGlobal          = 'c'
	opAppends         = 'e'
	opBinGet          = 'h'
	opLongBinGet      = 'j'
	opBinPut          = 'q'
	opLongBinPut      = 'r'
	opSetItem         = 's'
	opTuple           = 't'
	opSetItems        = 'u'
	opEmptyDict       = '}'
	opEmptyList       = ']'
	opEmptyTuple      = ')'
	opProto           = 0x80
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opMemoize         = 0x94
	opFrame           = 0x95
	opStackGlobal     = 0x93
	opBinBytes        = 'B'
	opShortBinBytes   = 'C'
	opInst            = 'i'
	opObj             = 'o'
	opDup             = '2'
	opNewObj          = 0x81
	opNewObjEx        = 0x92
	opLong4           = 0x8b
	opBinBytes8       = 0x8e
	opEmptySet        = 0x8f
	opAddItems        = 0x90
	opFrozenSet       = 0x91
	opByteArray8      = 0x96
)

// refused names the opcodes that are most likely to be met and are refused.
var refused = map[byte]string{
	0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 'P': "PERSID", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
}

func opName(op byte) string {
	if n, ok := refused[op]; ok {
		return "opcode " + n
	}
	return fmt.Sprintf("opcode %q", op)
}

// step carries out one opcode.
func (m *Machine) step(op byte) error {
	switch op {
	case opProto:
		if b, err := m.take(1); err != nil || b[0] < 2 || b[0] > 5 {
			return errors.New("a protocol other than 2 to 5")
		}
		return nil
	case opFrame:
		_, err := m.take(8)
		return err
	case opMark:
		return m.push(mark{}, 0)
	case opPop:
		if k := len(m.stack) - 1; k >= 0 {
			m.stack = m.stack[:k]
			return nil
		}
		return errors.New("a value is missing")
	case opPopMark:
		_, err := m.popMark()
		return err
	case opNone:
		return m.push(nil, 0)
	case opNewTrue, opNewFalse:
		return m.push(op == opNewTrue, 0)
	case opInt, opBinInt, opBinInt1, opBinInt2, opLong1, opLong4, opBinFloat:
		return m.numeral(op)
	case opBinUnicode:
		return m.text(m.counted(4))
	case opShortBinUnicode:
		return m.text(m.counted(1))
	case opBinUnicode8:
		return m.text(m.counted(8))
	case opBinString:
		return m.oldString(m.counted(4))
	case opShortBinString:
		return m.oldString(m.counted(1))
	case opBinBytes, opShortBinBytes, opBinBytes8, opByteArray8:
		return m.bytes(op)
	case opEmptyDict:
		return m.push(&Dict{}, Container)
	case opDup:
		v, err := m.top()
		if err != nil {
			return err
		}
		return m.push(v, 0)
	case opEmptyList, opEmptySet:
		return m.push(&List{}, Container)
	case opEmptyTuple:
		return m.push(Tuple{}, Container)
	case opTuple1, opTuple2, opTuple3:
		return m.tuple(m.popN(int(op) - opTuple1 + 1))
	case opTuple:
		return m.tuple(m.popMark())
	case opAppend:
		return m.append(m.popN(1))
	case opAppends, opAddItems:
		return m.append(m.popMark())
	case opFrozenSet:
		return m.tuple(m.popMark())
	case opSetItem:
		return m.items(m.popN(2))
	case opSetItems:
		return m.items(m.popMark())
	case opBinGet, opLongBinGet, opBinPut, opLongBinPut, opMemoize:
		return m.memory(op)
	case opGlobal:
		return m.named()
	case opStackGlobal:
		vs, err := m.popN(2)
		if err != nil {
			return err
		}
		module, ok := vs[0].(string)
		name, ok2 := vs[1].(string)
		if !ok || !ok2 {
			return errors.New("names that are no strings")
		}
		return m.Global(module, name)
	case opReduce:
		return m.reduce()
	case opInst, opObj, opNewObj, opNewObjEx:
		return m.instance(op)
	case opBuild:
		return m.build()
	case opBinPersID:
		return m.persistent()
	}
	return errors.New("not an opcode of a checkpoint: only weights are read")
}

// instance pushes an object of a class.
func (m *Machine) instance(op byte) error {
	switch op {
	case opNewObj, opNewObjEx:
		n := 2
		if op == opNewObjEx {
			n = 3
		}
		vs, err := m.popN(n)
		if err != nil {
			return err
		}
		return m.object(vs[0])
	case opInst:
		if _, err := m.popMark(); err != nil {
			return err
		}
		if err := m.named(); err != nil {
			return err
		}
		class, err := m.pop()
		if err != nil {
			return err
		}
		return m.object(class)
	}
	vs, err := m.popMark()
	if err != nil {
		return err
	}
	if len(vs) == 0 {
		return errors.New("no class")
	}
	return m.object(vs[0])
}

// numeral pushes a number.
func (m *Machine) numeral(op byte) error {
	switch op {
	case opInt:
		s, err := m.line()
		if err != nil {
			return err
		}
		if s == "00" || s == "01" {
			return m.push(s == "01", 0)
		}
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("%.30q is no integer", s)
		}
		return m.push(v, 8)
	case opBinFloat:
		b, err := m.take(8)
		if err != nil {
			return err
		}
		return m.push(math.Float64frombits(binary.BigEndian.Uint64(b)), 8)
	case opLong1, opLong4:
		b, err := m.counted(map[byte]int{opLong1: 1, opLong4: 4}[op])
		if err != nil {
			return err
		}
		if len(b) > 8 { // seeds and states of generators: no part of weights
			return m.push(Inert("a large integer"), 8)
		}
		var v int64
		if k := len(b); k > 0 && b[k-1] >= 0x80 {
			v = -1
		}
		for i := len(b) - 1; i >= 0; i-- {
			v = v<<8 | int64(b[i])
		}
		return m.push(v, 8)
	}
	size := map[byte]int{opBinInt: 4, opBinInt1: 1, opBinInt2: 2}[op]
	v, err := m.number(size)
	if err != nil {
		return err
	}
	if op == opBinInt {
		return m.push(int64(int32(v)), 8)
	}
	return m.push(int64(v), 8)
}

// bytes pushes a bytes object.
func (m *Machine) bytes(op byte) error {
	n := map[byte]int{opShortBinBytes: 1, opBinBytes: 4, opBinBytes8: 8, opByteArray8: 8}[op]
	b, err := m.counted(n)
	return m.raw(b, err)
}

// memory reads from or writes to the memo.
func (m *Machine) memory(op byte) error {
	if op == opMemoize {
		return m.remember(len(m.memo))
	}
	n := 1
	if op == opLongBinGet || op == opLongBinPut {
		n = 4
	}
	i, err := m.number(n)
	switch {
	case err != nil:
		return err
	case op == opBinGet || op == opLongBinGet:
		return m.fetch(i)
	}
	return m.remember(i)
}
