package torchfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// maxMemory bounds what the values of a pickle take, roughly in bytes; a tensor needs some 1,000.
const maxMemory = 40 << 20

// What values cost, roughly.
const (
	valueCost     = 16
	itemCost      = 32
	containerCost = 48
	memoCost      = 48
)

// machine reads a pickle of protocol 2 to 5.
type machine struct {
	in      []byte
	storage func(key string) (off, bytes int64, err error)

	at    int
	stack []any
	memo  map[int]any
	spent int
}

var errCut = errors.New("the pickle is cut short")

func (m *machine) charge(n int) error {
	if m.spent += n; m.spent > maxMemory {
		return fmt.Errorf("its values take more than %d MB", maxMemory>>20)
	}
	return nil
}

func (m *machine) take(n int) ([]byte, error) {
	if n < 0 || n > len(m.in)-m.at {
		return nil, errCut
	}
	b := m.in[m.at : m.at+n]
	m.at += n
	return b, nil
}

// number reads a little-endian unsigned integer of n bytes.
func (m *machine) number(n int) (int, error) {
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
func (m *machine) counted(n int) ([]byte, error) {
	k, err := m.number(n)
	if err != nil {
		return nil, err
	}
	return m.take(k)
}

func (m *machine) line() (string, error) {
	for i, c := range m.in[m.at:] {
		if c == '\n' {
			s := string(m.in[m.at : m.at+i])
			m.at += i + 1
			return s, nil
		}
	}
	return "", errCut
}

func (m *machine) push(v any, cost int) error {
	m.stack = append(m.stack, v)
	return m.charge(valueCost + cost)
}

func (m *machine) pop() (any, error) {
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
func (m *machine) popN(n int) ([]any, error) {
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
func (m *machine) popMark() ([]any, error) {
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
func (m *machine) top() (any, error) {
	v, err := m.pop()
	if err == nil {
		m.stack = append(m.stack, v)
	}
	return v, err
}

// run reads the pickle and returns its value.
func (m *machine) run() (any, error) {
	m.memo = map[int]any{}
	for {
		at := m.at
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
func (m *machine) fetch(i int) error {
	v, ok := m.memo[i]
	if !ok {
		return fmt.Errorf("no value %d to refer to", i)
	}
	return m.push(v, 0)
}

// remember puts the value on top into the memo.
func (m *machine) remember(i int) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	m.memo[i] = v
	return m.charge(memoCost)
}

func (m *machine) text(b []byte, err error) error {
	if err != nil {
		return err
	}
	if !utf8.Valid(b) {
		return errors.New("a string that is not UTF-8")
	}
	return m.push(string(b), len(b))
}

func (m *machine) tuple(vs []any, err error) error {
	if err != nil {
		return err
	}
	return m.push(append(tuple{}, vs...), containerCost+valueCost*len(vs))
}

// items adds keys and values, which alternate, to the dict below them.
func (m *machine) items(vs []any, err error) error {
	if err != nil {
		return err
	}
	under, err := m.top()
	if err != nil {
		return err
	}
	d, ok := under.(*dict)
	if !ok || len(vs)%2 != 0 {
		return fmt.Errorf("on %s with %d keys and values", kind(under), len(vs))
	}
	for i := 0; i < len(vs); i += 2 {
		switch vs[i].(type) {
		case string, int64:
		default:
			return fmt.Errorf("a key that is %s", kind(vs[i]))
		}
		d.items = append(d.items, item{vs[i], vs[i+1]})
	}
	return m.charge(itemCost * len(vs) / 2)
}

func (m *machine) append(vs []any, err error) error {
	if err != nil {
		return err
	}
	under, err := m.top()
	if err != nil {
		return err
	}
	l, ok := under.(*list)
	if !ok {
		return fmt.Errorf("on %s", kind(under))
	}
	l.items = append(l.items, vs...)
	return m.charge(2 * valueCost * len(vs))
}

func (m *machine) global(module, name string) error {
	g := global(module + "." + name)
	if !g.known() {
		return fmt.Errorf("%.200q is not part of weights and is not loaded: save the state_dict() alone", string(g))
	}
	return m.push(g, len(g))
}

// reduce applies a known function.
func (m *machine) reduce() error {
	vs, err := m.popN(2)
	if err != nil {
		return err
	}
	g, ok := vs[0].(global)
	args, ok2 := vs[1].(tuple)
	if !ok || !ok2 || functions[g] == nil {
		return fmt.Errorf("a call of %s with %s", kind(vs[0]), kind(vs[1]))
	}
	v, err := functions[g](m, args)
	if err != nil {
		return fmt.Errorf("%s: %w", g, err)
	}
	return m.push(v, containerCost)
}

// build sets attributes, which only an OrderedDict may have: the state dict's _metadata, which is not needed.
func (m *machine) build() error {
	vs, err := m.popN(2)
	if err != nil {
		return err
	}
	d, ok := vs[0].(*dict)
	if !ok {
		return fmt.Errorf("attributes of %s", kind(vs[0]))
	}
	return m.push(d, 0)
}

// persistent makes the storage that ('storage', class, key, place, elements) names.
func (m *machine) persistent() error {
	v, err := m.pop()
	if err != nil {
		return err
	}
	id, ok := v.(tuple)
	if !ok || len(id) < 5 || id[0] != any("storage") {
		return fmt.Errorf("%s does not name a storage", kind(v))
	}
	class, _ := id[1].(global)
	key, isKey := id[2].(string)
	n, isLen := id[4].(int64)
	dtype, known := storages[class]
	if !isKey || !isLen || !known {
		return fmt.Errorf("a storage of class %s", kind(id[1]))
	}
	off, bytes, err := m.storage(key)
	if err != nil {
		return err
	}
	if n < 0 || n > bytes/int64(dtype.Size()) || int64(int(n)) != n {
		return fmt.Errorf("storage %.100q of %d elements of %s has %d bytes", key, n, dtype, bytes)
	}
	return m.push(&storage{dtype, off, int(n)}, containerCost)
}
