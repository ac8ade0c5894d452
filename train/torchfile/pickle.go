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

// machine reads pickles of protocol 2 to 5, one behind the other.
type machine struct {
	in    []byte
	place func(key string) (*place, error) // of a storage

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
	m.memo, m.stack = map[int]any{}, nil
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
	if len(vs)%2 != 0 {
		return fmt.Errorf("on %s with %d keys and values", kind(under), len(vs))
	}
	switch d := under.(type) {
	case *object:
	case *dict:
		for i := 0; i < len(vs); i += 2 {
			d.items = append(d.items, item{vs[i], vs[i+1]})
		}
	default:
		return fmt.Errorf("on %s", kind(under))
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
	switch l := under.(type) {
	case *object:
	case *list:
		l.items = append(l.items, vs...)
	default:
		return fmt.Errorf("on %s", kind(under))
	}
	return m.charge(2 * valueCost * len(vs))
}

func (m *machine) global(module, name string) error {
	g := global(module + "." + name)
	return m.push(g, len(g))
}

// named pushes the global that two lines name.
func (m *machine) named() error {
	module, err := m.line()
	if err != nil {
		return err
	}
	name, err := m.line()
	if err != nil {
		return err
	}
	return m.global(module, name)
}

// reduce applies a known function. What any other would have made is an object.
func (m *machine) reduce() error {
	vs, err := m.popN(2)
	if err != nil {
		return err
	}
	args, ok := vs[1].(tuple)
	if !ok {
		return fmt.Errorf("a call of %s with %s", kind(vs[0]), kind(vs[1]))
	}
	g, _ := vs[0].(global)
	if functions[g] == nil {
		return m.object(vs[0])
	}
	v, err := functions[g](m, args)
	if err != nil {
		return fmt.Errorf("%s: %w", g, err)
	}
	return m.push(v, containerCost)
}

// object pushes what a class or function would have made, without its arguments.
func (m *machine) object(class any) error {
	switch g, ok := class.(global); {
	case ok && dicts[g]:
		return m.push(&dict{}, containerCost)
	case ok:
		return m.push(&object{class: g}, containerCost)
	}
	return m.push(&object{class: "a class of its own"}, containerCost)
}

// build gives an object its attributes. Those of anything else, as the state dict's _metadata, are not needed.
func (m *machine) build() error {
	vs, err := m.popN(2)
	if err != nil {
		return err
	}
	if o, ok := vs[0].(*object); ok {
		o.state = vs[1]
	}
	return m.push(vs[0], 0)
}

// persistent makes the storage that ('storage', class, key, device, elements, …) names.
func (m *machine) persistent() error {
	v, err := m.pop()
	if err != nil {
		return err
	}
	id, ok := v.(tuple)
	if ok && len(id) > 0 && id[0] == any("module") { // the class of a module, with its source
		return m.push(&object{class: "a module"}, containerCost)
	}
	if !ok || len(id) < 5 || id[0] != any("storage") {
		return fmt.Errorf("%s does not name a storage", kind(v))
	}
	class, isClass := id[1].(global)
	key, isKey := id[2].(string)
	n, isLen := id[4].(int64)
	if !isKey || !isLen || !isClass {
		return fmt.Errorf("a storage of class %s", kind(id[1]))
	}
	dtype, known := storages[class]
	size := dtype.Size()
	if !known {
		if size = odd[class]; size == 0 {
			return fmt.Errorf("a storage of class %s, whose elements are not known", kind(class))
		}
	}
	if len(id) > 5 && id[5] != nil {
		return errors.New("a storage that is a part of another")
	}
	p, err := m.place(key)
	if err != nil {
		return err
	}
	if n < 0 || int64(int(n)) != n || n > math.MaxInt64/int64(size) || p.bytes >= 0 && n*int64(size) > p.bytes {
		return fmt.Errorf("storage %.100q of %d elements of %s has %d bytes", key, n, dtype, p.bytes)
	}
	if p.bytes < 0 { // of the old form: the file says later how many there are
		p.need, p.unit = max(p.need, n*int64(size)), size
	}
	if !known {
		return m.push(inert("a storage of "+string(class)), containerCost)
	}
	return m.push(&storage{dtype, p, int(n)}, containerCost)
}
