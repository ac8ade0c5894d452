package nn

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	G "gorgonia.org/gorgonia"

	"onlinerna/internal/nearest"
)

// Architecture is a family of networks that differ in the number of classes and channels and in the input's size.
type Architecture struct {
	Name      string // as users type it
	Family    string // of nets that are built alike, as "vgg"
	Summary   string // a line
	Reference string // where it was published

	Size     int // default height and width of the input
	Channels int // default
	Classes  int // default
	MinSize  int // smallest height and width of the input; 0 if any will do

	// Mean and Std normalise the pixels, on the scale 0 to 1, as the published weights take them, one a channel; nil
	// without such weights.
	Mean, Std []float64

	// Resize is the length of an image's shorter side before the crop of Size×Size, and Interpolation the method, as the
	// published weights take images; zero: in proportion to 256 for 224, bilinear.
	Resize        int
	Interpolation string

	// BatchNormEps and BatchNormMomentum are those of the net's batch normalisation; 0 means 1e-5 and 0.1.
	BatchNormEps, BatchNormMomentum float64

	// SamePadding pads the input of convolutions of a stride above 1 as TensorFlow's SAME does: by as little as gives
	// ⌈extent/stride⌉ outputs, an odd pixel behind it. Conv.Pad is for the others.
	SamePadding bool

	// Dropout and DropPath are those of the published recipe, for Config's fields of the same names.
	Dropout, DropPath float64

	// Block is a regular expression for names of parameters, whose group names the block of layers that the parameter
	// is of. Without, and for other names, a block's name ends with the first part that is a number, as layer1.0.
	Block string

	// Positions are embedded positions, which weights for images of another size have for another grid.
	Positions Positions

	// Heads are the names of the layers that make the logits; nil means the last.
	Heads []string

	// Init, if not nil, changes the initial distribution of a parameter, which is its layer's.
	Init func(p Param) Init

	// Build adds the network to b: it applies layers to x, the normalised input [N,C,Size,Size], and returns
	// the logits [N,K].
	Build func(b *Builder, x *G.Node) *G.Node
}

// Positions is a parameter [1,First+n²,C], or [First+n²,C], that has a row for each place of a square grid, behind the
// rows of other tokens.
type Positions struct {
	Name  string
	First int

	// Class is the parameter of a class token that has no place here. Weights may have one, before all others: it is added
	// to the token.
	Class string
}

var registry struct {
	sync.RWMutex
	archs   []Architecture
	aliases map[string]string
}

// Register adds an architecture, as a rule from the init function of the file that defines it. It panics if a is
// incomplete or its name is taken.
func Register(a Architecture) {
	registry.Lock()
	defer registry.Unlock()
	a = a.withDefaults()
	if a.Name == "" || a.Build == nil || a.Size < 1 || a.Channels < 1 || a.Classes < 2 {
		panic(fmt.Sprintf("nn: architecture %q is incomplete", a.Name))
	}
	i, taken := slices.BinarySearchFunc(registry.archs, a.Name, func(a Architecture, name string) int {
		return compareNames(a.Name, name)
	})
	if _, alias := registry.aliases[a.Name]; taken || alias {
		panic(fmt.Sprintf("nn: architecture %q is registered twice", a.Name))
	}
	registry.archs = slices.Insert(registry.archs, i, a)
}

// Alias makes Lookup find a registered architecture by another program's name for it, too. It panics if alias is taken
// or name is unknown.
func Alias(alias, name string) {
	registry.Lock()
	defer registry.Unlock()
	has := func(name string) bool {
		return slices.ContainsFunc(registry.archs, func(a Architecture) bool { return a.Name == name })
	}
	if _, taken := registry.aliases[alias]; taken || has(alias) || !has(name) {
		panic(fmt.Sprintf("nn: alias %q of %q: the one is taken, or the other unknown", alias, name))
	}
	if registry.aliases == nil {
		registry.aliases = map[string]string{}
	}
	registry.aliases[alias] = name
}

// withDefaults fills in PyTorch's constants of batch normalisation.
func (a Architecture) withDefaults() Architecture {
	a.BatchNormEps = cmp.Or(a.BatchNormEps, 1e-5)
	a.BatchNormMomentum = cmp.Or(a.BatchNormMomentum, .1)
	return a
}

// ResizeFor is Resize in proportion to another size of the crop, 0 without a value.
func (a Architecture) ResizeFor(size int) int {
	return int(math.Round(float64(a.Resize*size) / float64(a.Size)))
}

// Architectures lists all architectures by name; numbers in names count as numbers.
func Architectures() []Architecture {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Clone(registry.archs)
}

// Aliases are the names by alias.
func Aliases() map[string]string {
	registry.RLock()
	defer registry.RUnlock()
	return maps.Clone(registry.aliases)
}

// Lookup finds an architecture by name or alias. The error for an unknown one suggests the nearest, or lists all.
func Lookup(name string) (Architecture, error) {
	archs := Architectures()
	registry.RLock()
	name = cmp.Or(registry.aliases[name], name)
	registry.RUnlock()
	names := make([]string, len(archs))
	var longer []string // names that begin with it, such as those of a family
	for i, a := range archs {
		if a.Name == name {
			return a, nil
		}
		if names[i] = a.Name; name != "" && strings.HasPrefix(a.Name, name) {
			longer = append(longer, a.Name)
		}
	}
	if longer != nil {
		const most = 10
		list := strings.Join(longer[:min(len(longer), most)], ", ") + "?"
		if more := len(longer) - most; more > 0 {
			list = fmt.Sprintf("%s or of %d others? rna models lists them", strings.TrimSuffix(list, "?"), more)
		}
		return Architecture{}, fmt.Errorf("nn: unknown model %q, did you mean one of %s", name, list)
	}
	if n := nearest.To(name, names); n != "" {
		return Architecture{}, fmt.Errorf("nn: unknown model %q, did you mean %q?", name, n)
	}
	const line = 20 // names that a line holds
	if len(names) > line {
		return Architecture{}, fmt.Errorf("nn: unknown model %q: rna models lists all %d", name, len(names))
	}
	return Architecture{}, fmt.Errorf("nn: unknown model %q (known: %s)", name, strings.Join(names, ", "))
}

// compareNames orders names with trailing numbers, as "resnet18" before "resnet101".
func compareNames(a, b string) int {
	pa, na := splitNumber(a)
	pb, nb := splitNumber(b)
	return cmp.Or(strings.Compare(pa, pb), cmp.Compare(na, nb), strings.Compare(a, b))
}

func splitNumber(s string) (string, int) {
	p := strings.TrimRight(s, "0123456789")
	n, _ := strconv.Atoi(s[len(p):])
	return p, n
}
