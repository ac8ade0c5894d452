// Package pickle reads Python's pickles of protocol 2 to 5 without running anything that they name. Its machine knows
// the opcodes; it calls only the functions that its user gives it, and an [Object] without arguments stands for the
// result of any other class or function. Its allocations are bounded, whatever the pickle says.
package pickle

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// MaxMemory bounds the memory of a pickle's values, roughly in bytes. The bytes of [Bytes] do not count: they are the
// input's.
const MaxMemory = 40 << 20

// The approximate size of values.
const (
	valueCost = 16
	ItemCost  = 32 // of a key with its value
	Container = 48 // an empty one
	memoCost  = 48
)

// Machine reads pickles, one after another.
type Machine struct {
	In []byte
	At int // in In, of the next pickle
	// Functions are the globals that may be called. None does more than make a value. OrderedDict and the like are
	// known without.
	Functions map[Global]Function
	// Persistent makes the value of a persistent id; without, such ids are errors.
	Persistent func(id any) (any, error)
	// RawStrings makes strings of Python 2, which may be text or bytes, Bytes; without, they must be text.
	RawStrings bool
	// Limit bounds the memory of values in place of MaxMemory, if it is not 0.
	Limit int

	stack []any
	memo  map[int]any
	spent int
}

// Function applies a global to its arguments.
type Function func(m *Machine, args Tuple) (any, error)

var errCut = errors.New("the pickle is cut short")

// Charge counts n bytes of values; it fails if they are too many.
func (m *Machine) Charge(n int) error {
	if m.spent += n; m.spent > cmp.Or(m.Limit, MaxMemory) {
		return fmt.Errorf("its values take more than %d MB", cmp.Or(m.Limit, MaxMemory)>>20)
	}
	return nil
}

func (m *Machine) take(n int) ([]byte, error) {
	if n < 0 || n > len(m.In)-m.At {
		return nil, errCut
	}
	b := m.In[m.At : m.At+n]
	m.At += n
	return b, nil
}

// number reads a little-endian unsigned integer of n bytes.
func (m *Machine) number(n int) (int, error) {
	b, err := m.take(n)
	if err != nil {
		return 0, err
	}
	var w [8]byte
	copy(w[:], b)
	v := binary.LittleEndian.Uint64(w[:])
	if v > math.MaxInt32 && n == 8 || int(v) < 0 {
		return 0, errCut // no length or index that a pickle of this size can have
	}
	return int(v), nil
}

// counted reads a length of n bytes, then as many bytes.
func (m *Machine) counted(n int) ([]byte, error) {
	k, err := m.number(n)
	if err != nil {
		return nil, err
	}
	return m.take(k)
}

func (m *Machine) line() (string, error) {
	for i, c := range m.In[m.At:] {
		if c == '\n' {
			s := string(m.In[m.At : m.At+i])
			m.At += i + 1
			return s, nil
		}
	}
	return "", errCut
}

func (m *Machine) push(v any, cost int) error {
	m.stack = append(m.stack, v)
	return m.Charge(valueCost + cost)
}

func (m *Machine) pop() (any, error) {
	k := len(m.stack) - 1
	if k < 0 {
		return nil, errors.New("a value is missing")
	}
	v := m.stack[k]
	if _, is := v.(mark); is {
		return nil, errors.New("a mark in place of a value")
	}
	m.stack = m.stack[:k]
	return v, nil
}

// popN pops n values, in the order in which they were pushed. They stay valid until the next push.
func (m *Machine) popN(n int) ([]any, error) {
	k := len(m.stack) - n
	if k < 0 {
		return nil, errors.New("a value is missing")
	}
	vs := m.stack[k:]
	for _, v := range vs {
		if _, is := v.(mark); is {
			return nil, errors.New("a mark in place of a value")
		}
	}
	m.stack = m.stack[:k]
	return vs, nil
}

// popMark pops the values above the last mark, and the mark.
func (m *Machine) popMark() ([]any, error) {
	for k := len(m.stack) - 1; k >= 0; k-- {
		if _, is := m.stack[k].(mark); is {
			vs := m.stack[k+1:]
			m.stack = m.stack[:k]
			return vs, nil
		}
	}
	return nil, errors.New("a mark is missing")
}

// top returns the value on top, which stays there.
func (m *Machine) top() (any, error) {
	v, err := m.pop()
	if err == nil {
		m.stack = append(m.stack, v)
	}
	return v, err
}

// Run reads one pickle and returns its value.
func (m *Machine) Run() (any, error) {
	m.memo, m.stack = map[int]any{}, nil
	for {
		at := m.At
		b, err := m.take(1)
		if err != nil {
			return nil, err
		}
		if b[0] == opStop {
			return m.pop()
		}
		if err := m.step(b[0]); err != nil {
			return nil, fmt.Errorf("%s at byte %d: %w", opName(b[0]), at, err)
		}
	}
}

// fetch pushes a value of the memo.
func (m *Machine) fetch(i int) error {
	v, ok := m.memo[i]
	if !ok {
		return fmt.Errorf("no value %d to refer to", i)
	}
	return m.push(v, 0)
}

// remember puts the value on top into the memo.
func (m *Machine) remember(i int) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	m.memo[i] = v
	return m.Charge(memoCost)
}

func (m *Machine) text(b []byte, err error) error {
	if err != nil {
		return err
	}
	if !utf8.Valid(b) {
		return errors.New("a string that is not UTF-8")
	}
	return m.push(string(b), len(b))
}

// oldString pushes a string of Python 2.
func (m *Machine) oldString(b []byte, err error) error {
	if m.RawStrings {
		return m.raw(b, err)
	}
	return m.text(b, err)
}

func (m *Machine) raw(b []byte, err error) error {
	if err != nil {
		return err
	}
	return m.push(Bytes{m.At - len(b), b[:len(b):len(b)]}, 0)
}

func (m *Machine) tuple(vs []any, err error) error {
	if err != nil {
		return err
	}
	return m.push(append(Tuple{}, vs...), Container+valueCost*len(vs))
}

// items adds keys and values, which alternate, to the dict below them.
func (m *Machine) items(vs []any, err error) error {
	if err != nil {
		return err
	}
	under, err := m.top()
	if err != nil {
		return err
	}
	if len(vs)%2 != 0 {
		return fmt.Errorf("on %s with %d keys and values", Kind(under), len(vs))
	}
	switch d := under.(type) {
	case *Object:
	case *Dict:
		for i := 0; i < len(vs); i += 2 {
			d.Items = append(d.Items, Item{vs[i], vs[i+1]})
		}
	default:
		return fmt.Errorf("on %s", Kind(under))
	}
	return m.Charge(ItemCost * len(vs) / 2)
}

func (m *Machine) append(vs []any, err error) error {
	if err != nil {
		return err
	}
	under, err := m.top()
	if err != nil {
		return err
	}
	switch l := under.(type) {
	case *Object:
	case *List:
		l.Items = append(l.Items, vs...)
	default:
		return fmt.Errorf("on %s", Kind(under))
	}
	return m.Charge(2 * valueCost * len(vs))
}

func (m *Machine) Global(module, name string) error {
	g := Global(module + "." + name)
	return m.push(g, len(g))
}

// named pushes the global that two lines name.
func (m *Machine) named() error {
	module, err := m.line()
	if err != nil {
		return err
	}
	name, err := m.line()
	if err != nil {
		return err
	}
	return m.Global(module, name)
}

// reduce applies a known function. The result of any other is an object.
func (m *Machine) reduce() error {
	vs, err := m.popN(2)
	if err != nil {
		return err
	}
	args, ok := vs[1].(Tuple)
	if !ok {
		return fmt.Errorf("a call of %s with %s", Kind(vs[0]), Kind(vs[1]))
	}
	g, _ := vs[0].(Global)
	call := m.Functions[g]
	if call == nil {
		call = functions[g]
	}
	if call == nil {
		return m.object(vs[0])
	}
	v, err := call(m, args)
	if err != nil {
		return fmt.Errorf("%s: %w", g, err)
	}
	return m.push(v, Container)
}

// object pushes a stand-in for the result of a class or function, without its arguments.
func (m *Machine) object(class any) error {
	switch g, ok := class.(Global); {
	case ok && dicts[g]:
		return m.push(&Dict{}, Container)
	case ok:
		return m.push(&Object{Class: g}, Container)
	}
	return m.push(&Object{Class: "a class of its own"}, Container)
}

// build gives an object its attributes. Those of anything else, as the state dict's _metadata, are not needed.
func (m *Machine) build() error {
	vs, err := m.popN(2)
	if err != nil {
		return err
	}
	if o, ok := vs[0].(*Object); ok {
		o.State = vs[1]
	}
	return m.push(vs[0], 0)
}

// persistent makes the value of a persistent id.
func (m *Machine) persistent() error {
	v, err := m.pop()
	if err != nil {
		return err
	}
	if m.Persistent == nil {
		return errors.New("a reference to an object not in the pickle")
	}
	if v, err = m.Persistent(v); err != nil {
		return err
	}
	return m.push(v, Container)
}
