package ptx

import (
	"bytes"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// A Module is a parsed PTX text.
type Module struct{ kernels map[string]*Kernel }

// Kernel returns the entry with this name, or nil.
func (m *Module) Kernel(name string) *Kernel { return m.kernels[name] }

// Options configure the decoding of a module.
type Options struct {
	// Beside moves the results of approximate instructions this many units in the last place away from zero, or towards
	// it if negative. With 0 they are rounded to nearest.
	Beside int
}

// A Kernel is a decoded entry.
type Kernel struct {
	Name   string
	code   []instr
	text   []string // of each instruction, for messages
	lines  []int
	params []param
	consts []uint64 // in the slots after the special registers
	slots  int
	shared int // bytes
	local  int
	grain  uint // log₂ of the smallest access to shared memory
}

type param struct {
	name   string
	at, of int // offset and bytes
}

// Instructions is the number of the kernel's instructions.
func (k *Kernel) Instructions() int { return len(k.code) }

// Sizes are the parameters' bytes.
func (k *Kernel) Sizes() (all []int) {
	for _, p := range k.params {
		all = append(all, p.of)
	}
	return all
}

// Cost is about the number of instructions that ptxas writes for instruction i: none for a move between registers,
// many for a division.
func (k *Kernel) Cost(i int) uint64 {
	name := k.text[i]
	if name[0] == '@' {
		_, name, _ = strings.Cut(name, " ")
	}
	kind, rest, _ := strings.Cut(name, ".")
	rest, _, _ = strings.Cut(rest, " ")
	switch {
	case kind == "mov":
		return 0
	case kind != "div" && kind != "rem" && kind != "sqrt" && kind != "rcp":
		return 1
	case strings.HasSuffix(rest, "64"):
		return 70
	case strings.HasSuffix(rest, "32") && !strings.Contains(rest, "approx"):
		return 18
	}
	return 1
}

// Instruction is an instruction's text with its line number.
func (k *Kernel) Instruction(i int) string { return fmt.Sprintf("%d: %s", k.lines[i], k.text[i]) }

// bytesOf is the size of each type in bytes.
var bytesOf = map[string]int{
	"pred": 1, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "b32": 4, "u32": 4,
	"s32": 4, "f32": 4,
	"b64": 8, "u64": 8, "s64": 8, "f64": 8,
}

// A statement ends with a semicolon, with a colon after a label, or is a brace, unless that encloses a vector.
type statement struct {
	text string
	line int
}

// directives are unterminated lines that are ignored.
var directives = []string{".version", ".target", ".address_size"}

// statements splits a text and removes comments.
func statements(text string) []statement {
	var all []statement
	var now []byte
	start, vector := 0, 0
	flush := func() {
		if s := strings.Join(strings.Fields(string(now)), " "); s != "" {
			all = append(all, statement{s, start})
		}
		now = now[:0]
	}
lines:
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "//")
		for _, d := range directives {
			if strings.HasPrefix(line, d) {
				continue lines
			}
		}
		for i := range line {
			c := line[i]
			blank := len(now) == 0
			switch {
			case blank && (c == ' ' || c == '\t' || c == '\r'):
			case c == ';' || c == ':':
				if c == ':' {
					now = append(now, c)
				}
				flush()
			case c == '{' && !blank && (now[0] != '.' || bytes.IndexByte(now, '=') >= 0):
				vector++
				now = append(now, c)
			case c == '}' && vector > 0:
				vector--
				now = append(now, c)
			case c == '{' || c == '}':
				flush()
				all = append(all, statement{string(c), n + 1})
			default:
				if blank {
					start = n + 1
				}
				now = append(now, c)
			}
		}
		if len(now) > 0 {
			now = append(now, ' ')
		}
	}
	flush()
	return all
}

// Parse parses a module and decodes its kernels.
func Parse(text string, o Options) (*Module, error) {
	m := &Module{kernels: map[string]*Kernel{}}
	shared := variables{}
	list := statements(text)
	for i := 0; i < len(list); i++ {
		s := list[i]
		switch {
		case strings.HasPrefix(s.text, ".visible .entry") || strings.HasPrefix(s.text, ".entry"):
			end, depth := i+1, 0
			for ; end < len(list); end++ {
				if list[end].text == "{" {
					depth++
				} else if list[end].text == "}" {
					if depth--; depth == 0 {
						break
					}
				}
			}
			if depth != 0 || end == len(list) {
				return nil, fmt.Errorf("ptx: line %d: the kernel is not terminated", s.line)
			}
			d := decoder{options: o, shared: variables{maps.Clone(shared.at), shared.bytes}, slots: map[string]int{},
				widths: map[string]int{}, labels: map[string]int{}}
			k, err := d.kernel(s.text, list[i+2:end])
			if err != nil {
				return nil, err
			}
			m.kernels[k.Name] = k
			i = end
		case strings.HasPrefix(s.text, ".shared"):
			if err := shared.declare(s.text); err != nil {
				return nil, fmt.Errorf("ptx: line %d: %w", s.line, err)
			}
		case strings.HasPrefix(s.text, ".global"): // constants that no kernel uses: using one is an unknown name
		default:
			return nil, fmt.Errorf("ptx: line %d: %s is not known", s.line, s.text)
		}
	}
	return m, nil
}

// variables are names in shared or local memory, with their offsets.
type variables struct {
	at    map[string]int
	bytes int
}

// declare parses a declaration such as .shared .align 8 .b8 name[64].
func (v *variables) declare(text string) error {
	align, size, name := 1, 0, ""
	words := strings.Fields(text)[1:]
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == ".align" && i+1 < len(words):
			i++
			align, _ = strconv.Atoi(words[i])
		case strings.HasPrefix(w, "."):
			size = bytesOf[w[1:]]
			align = max(align, size)
		default:
			name = w
		}
	}
	if open := strings.IndexByte(name, '['); open >= 0 {
		n, err := strconv.Atoi(strings.TrimSuffix(name[open+1:], "]"))
		if err != nil {
			return fmt.Errorf("%s: an array without a length is not known", text)
		}
		name, size = name[:open], size*n
	}
	if size == 0 || name == "" || align < 1 {
		return fmt.Errorf("%s is not known", text)
	}
	if v.at == nil {
		v.at = map[string]int{}
	}
	v.bytes = (v.bytes + align - 1) / align * align
	v.at[name] = v.bytes
	v.bytes += size
	return nil
}

// parameters parses an entry's parameter list.
func parameters(text string) ([]param, error) {
	var all []param
	at := 0
	for _, one := range strings.Split(text, ",") {
		words := strings.Fields(one)
		if len(words) == 0 {
			continue
		}
		name, size, align := words[len(words)-1], 0, 1
		for i, w := range words[:len(words)-1] {
			if n := bytesOf[strings.TrimPrefix(w, ".")]; n > 0 && size == 0 {
				size, align = n, max(align, n)
			}
			if w == ".align" && size == 0 {
				align, _ = strconv.Atoi(words[i+1])
			}
		}
		if open := strings.IndexByte(name, '['); open >= 0 {
			n, err := strconv.Atoi(strings.TrimSuffix(name[open+1:], "]"))
			if err != nil {
				return nil, err
			}
			name, size = name[:open], size*n
		}
		if words[0] != ".param" || size == 0 || align == 0 {
			return nil, fmt.Errorf("parameter %s is not known", one)
		}
		at = (at + align - 1) / align * align
		all = append(all, param{name, at, size})
		at += size
	}
	return all, nil
}
