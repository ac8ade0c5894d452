package option

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

type mode string

type inner struct{ Depth *float64 }

type settings struct {
	Name   string
	Mode   mode
	On     bool
	Off    *bool
	Count  int
	Seed   uint64
	Rate   float64
	Final  *float64
	List   []int
	Words  []string
	Pair   [2]int
	Wait   time.Duration
	Memory int64
	Inner  inner
}

var table = Table[settings]{
	{Name: "name", Group: "A", Help: "a name", Field: func(s *settings) any { return &s.Name },
		CheckText: func(s string) error {
			if s == "bad" {
				return errors.New("is bad")
			}
			return nil
		}},
	{Name: "mode", Group: "B", Help: "a mode", Default: "fast", Field: func(s *settings) any { return &s.Mode },
		Values: OneOf[mode]("fast", "slow")},
	{Name: "on", Group: "A", Field: func(s *settings) any { return &s.On }},
	{Name: "off", Field: func(s *settings) any { return &s.Off }, Default: "true"},
	{Name: "count", Field: func(s *settings) any { return &s.Count }, Default: "3", Check: AtLeast(1),
		Clears: []string{"lr-final"}},
	{Name: "seed", Field: func(s *settings) any { return &s.Seed }},
	{Name: "rate", Field: func(s *settings) any { return &s.Rate }, Check: Positive},
	{Name: "lr-final", Field: func(s *settings) any { return &s.Final }, Check: NotNegative, Default: "0.1"},
	{Name: "list", Field: func(s *settings) any { return &s.List }, Check: Between(2, 9)},
	{Name: "words", Field: func(s *settings) any { return &s.Words }},
	{Name: "pair", Field: func(s *settings) any { return &s.Pair }},
	{Name: "wait", Field: func(s *settings) any { return &s.Wait }},
	{Name: "memory", Field: func(s *settings) any { return (*Bytes)(&s.Memory) }},
}

func init() {
	table = append(table, In(Table[inner]{{Name: "depth", Field: func(x *inner) any { return &x.Depth }, Check: Below(1)}},
		func(s *settings) *inner { return &s.Inner })...)
}

func ptr[T any](x T) *T { return &x }

// TestFiles reads values, writes them and reads them again, as JSON and as YAML.
func TestFiles(t *testing.T) {
	want := settings{Name: "x y", Mode: "slow", On: true, Off: ptr(false), Count: 4, Seed: math.MaxUint64, Rate: 1e-9,
		Final: ptr(0.), List: []int{2, 9},
		Words: []string{"a,b", "c"}, Pair: [2]int{4, 13}, Wait: 90 * time.Second, Memory: 3 << 29, Inner: inner{ptr(0.)}}
	for _, f := range []struct {
		text string
		yaml bool
	}{
		{`{"name": "x y", "mode": "slow", "on": true, "off": false, "count": 4, "seed": 18446744073709551615, "rate": 1e-9, "lr_final": 0, "list": [2, 9],
			"words": ["a,b", "c"], "pair": [4, 13], "wait": "90s", "memory": "1.5GiB", "depth": 0}`, false},
		{"name: x y\nmode: slow\non: true\noff: no\ncount: 4\nseed: 18446744073709551615\nrate: 1e-9\nlr-final: " +
			"0.0\nlist: '2,9'\nwords: ['a,b', c]\n" +
			"pair: [4, 13]\nwait: 1m30s\nmemory: 1610612736\ndepth: 0\n", true},
	} {
		values, err := Decode([]byte(strings.ReplaceAll(f.text, ": no\n", ": false\n")), f.yaml)
		if err != nil {
			t.Fatal(err)
		}
		list, err := table.FromFile(values)
		if err != nil {
			t.Fatal(err)
		}
		var got settings
		if err := table.Apply(&got, list...); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\n%+v, want\n%+v", err, got, want)
		}
		b, err := table.Encode(&got)
		if err != nil {
			t.Fatal(err)
		}
		values, err = Decode(b, false)
		if err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		list, err = table.FromFile(values)
		again := settings{}
		if err = errors.Join(err, table.Apply(&again, list...)); err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%v: %s\n%+v", err, b, again)
		}
		copied := settings{}
		if err := table.Apply(&copied, table.Settings(&got)...); err != nil || !reflect.DeepEqual(copied, want) {
			t.Errorf("settings %v, %v", table.Settings(&got), err)
		}
		if err := table.Check(&got); err != nil {
			t.Error(err)
		}
	}
}

// An alias repeats a long text in three bytes: the limit applies to values, not only to the file.
func TestAliases(t *testing.T) {
	text := "name: &a " + strings.Repeat("x", 1<<20) + "\nwords: [" + strings.Repeat("*a,", 1<<19) + "]\n"
	values, err := Decode([]byte(text), true)
	if err == nil {
		_, err = table.FromFile(values)
	}
	if err == nil || !strings.Contains(err.Error(), "words: its first 17 values have more than 16777216 bytes") {
		t.Errorf("aliases: %v", err)
	}
	if _, err := Decode(make([]byte, 5<<20), true); err == nil || !strings.Contains(err.Error(), "of YAML, the limit") {
		t.Errorf("a long file: %v", err)
	}
}

// TestErrors checks error messages.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"cuont": 3}`:                `unknown key "cuont", did you mean count?`,
		`{"count": "three"}`:          "count three: want a whole number",
		`{"count": 1.5}`:              "count 1.5: want a whole number",
		`{"count": 0}`:                "count 0: must be at least 1",
		`{"count": true}`:             "count true: want a whole number",
		`{"count": [1]}`:              "count 1: want a whole number, not a list",
		`{"count": {"a": 1}}`:         "count: want a value, not a group of keys",
		`{"seed": -1}`:                "seed -1: want a whole number, not negative",
		`{"rate": "fast"}`:            "rate fast: want a number",
		`{"rate": 1e999}`:             "rate 1e999: want a number of usual size",
		`{"rate": "NaN"}`:             "rate NaN: must be finite",
		`{"rate": 0}`:                 "rate 0: must be above 0",
		`{"on": "yes"}`:               "on yes: want true or false",
		`{"mode": "fsat"}`:            "mode fsat: use one of fast, slow (did you mean fast?)",
		`{"name": "bad"}`:             "name bad: is bad",
		`{"list": [2, 10]}`:           "list 2,10: must lie between 2 and 9",
		`{"list": [2, "x"]}`:          "list 2,x: want a whole number in place of x",
		`{"list": [[2]]}`:             "list: want a value, not a list",
		`{"pair": [1]}`:               "pair 1: want 2 numbers, as 4,13",
		`{"wait": 5}`:                 "wait 5: want a time, as 90s, 10m or 1h",
		`{"memory": "much"}`:          "memory much: want a number of bytes, as 800MB or 2GB",
		`{"depth": 1}`:                "depth 1: must lie in [0, 1)",
		`{"lr-final":1,"lr_final":1}`: "lr-final is there twice",
		`[1]`:                         `want options, as {"epochs": 30}`,
		`{} {}`:                       "there is more behind",
	} {
		values, err := Decode([]byte(text), false)
		var list []Setting
		if err == nil {
			list, err = table.FromFile(values)
		}
		if err == nil {
			err = table.Apply(new(settings), list...)
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "strconv") ||
			strings.Contains(err.Error(), "float64") {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	if _, err := Decode([]byte("- 1\n"), true); err == nil || !strings.Contains(err.Error(), "want options") {
		t.Errorf("a list: %v", err)
	}
	for _, s := range []settings{{Count: -1}, {Rate: math.Inf(1)}, {Memory: -5}, {Inner: inner{ptr(2.)}}, {Mode: "x"},
		{List: []int{1}}} {
		if err := table.Check(&s); err == nil || !errors.As(err, new(*Error)) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// TestSources lets a later source win, and clears options of earlier sources.
func TestSources(t *testing.T) {
	var s settings
	err := table.Apply(&s, Settings("count 4  lr-final 0.5  on true")...)
	if err == nil && *s.Final != .5 {
		t.Errorf("%+v", s)
	}
	if err = errors.Join(err, table.Apply(&s, Setting{Name: "count", Text: "5"},
		Setting{Name: "on", Text: "false"})); err != nil || s.Final != nil || s.On || s.Count != 5 {
		t.Errorf("%+v, %v", s, err)
	}
	if o := table.Find("lr_final"); o == nil || o.Usage() != " (default: 0.1)" {
		t.Errorf("%+v", o)
	}
	if g := table.Groups(); !reflect.DeepEqual(g, []string{"A", "B", ""}) {
		t.Errorf("groups %q", g)
	}
	if rows := table.Rows(); len(rows) != len(table) || rows[1].Type != "string" || len(rows[1].Values) != 2 {
		t.Errorf("%+v", rows)
	}
}

// TestAmbiguous finds a field that cannot distinguish zero from unset.
func TestAmbiguous(t *testing.T) {
	if name := table.Ambiguous(); name != "" {
		t.Errorf("%s", name)
	}
	wrong := append(table, Option[settings]{Name: "wrong", Default: "7", Field: func(s *settings) any { return &s.Count }})
	if name := wrong.Ambiguous(); name != "wrong" {
		t.Errorf("found %q", name)
	}
}

func TestChecks(t *testing.T) {
	for _, c := range []struct {
		check func(float64) error
		ok    []float64
		bad   []float64
	}{
		{Positive, []float64{1e-300}, []float64{0, -1}},
		{NotNegative, []float64{0, 1}, []float64{-1e-300}},
		{AtLeast(2), []float64{2}, []float64{1.9}},
		{Between(1, 2), []float64{1, 2}, []float64{.9, 2.1}},
		{Below(1), []float64{0, .9}, []float64{-.1, 1}},
		{Inside(0, 1), []float64{.1}, []float64{0, 1}},
		{UpTo(1), []float64{.1, 1}, []float64{0, 1.1}},
	} {
		for _, x := range c.ok {
			if err := c.check(x); err != nil {
				t.Errorf("%g: %v", x, err)
			}
		}
		for _, x := range append(c.bad, math.NaN()) {
			if c.check(x) == nil {
				t.Errorf("%s is taken", strconv.FormatFloat(x, 'g', -1, 64))
			}
		}
	}
}

func TestShare(t *testing.T) {
	for text, want := range map[string]Share{"0.2": 0.2, "20%": 0.2, "33.3 %": 0.333, "-1": -1} {
		var s Share
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "%", "a fifth", "20%%"} {
		if s := Share(0.5); s.Set(text) == nil || s != 0.5 {
			t.Errorf("%q: %v", text, s)
		}
	}
	o := Option[Share]{Name: "share", Field: func(s *Share) any { return s }, Check: Inside(0, 1)}
	for _, text := range []string{"0", "1", "120%", "nan"} {
		if o.Set(new(Share), text) == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{"800MB": 800e6, "2GB": 2e9, "1.5GiB": 3 << 29, "64mib": 64 << 20,
		"1000": 1000, "12 kB": 12000, "7B": 7} {
		var b Bytes
		if err := b.Set(text); err != nil || b != want {
			t.Errorf("%s: %d, want %d, %v", text, b, want, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "0", "1XB", "1e30", "NaN"} {
		if b := Bytes(5); b.Set(text) == nil || b != 5 {
			t.Errorf("%q is taken as %d", text, b)
		}
	}
}

// TestTaken: a set value has a text that sets the same value again, and can be unset.
func TestTaken(t *testing.T) {
	shares := Table[Share]{{Name: "share", Default: "0", Field: func(s *Share) any { return s },
		Check: Inside(0, 1)}}.Under("Shares")
	if r := shares.Rows(); len(r) != 1 || r[0].Group != "Shares" || r[0].Type != "number" {
		t.Errorf("%+v", r)
	}
	var x Share
	if err := shares[0].Set(&x, "20%"); err != nil || x.Float() != 0.2 || shares[0].Text(&x) != "0.2" {
		t.Errorf("%v, %v", x, err)
	}
	if shares[0].Unset(&x); shares[0].IsSet(&x) {
		t.Errorf("%v", x)
	}
	for name, text := range map[string]string{"memory": "2GB", "wait": "90s", "words": `a,"b,c"`, "pair": "4,13",
		"lr-final": "0.5", "off": "false"} {
		o := table.Find(name)
		var a, b settings
		err := o.Set(&a, text)
		if err == nil {
			err = o.Set(&b, o.Text(&a))
		}
		if err != nil || !o.IsSet(&a) || !reflect.DeepEqual(a, b) {
			t.Errorf("%s %s: %+v and %+v, %v", name, text, a, b, err)
		}
		if o.Unset(&a); o.IsSet(&a) || o.Text(&a) != "" {
			t.Errorf("%s is still %s", name, o.Text(&a))
		}
	}
	if use := table.Find("mode").Usage(); use != "a mode (default: fast)" {
		t.Errorf("%q", use)
	}
	for text, want := range map[string]string{"wait soon": "want a time, as 90s, 10m or 1h",
		`words "a`: "want a list with commas between", "memory x": "want a number of bytes"} {
		var a settings
		err := table.Apply(&a, Settings(text)...)
		var wrong *Error
		if !errors.As(err, &wrong) || errors.Unwrap(err) == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	n, m := 0, (*int)(nil)
	Default(&n, 3)
	Default(&n, 4)
	DefaultPointer(&m, 3)
	DefaultPointer(&m, 4)
	if n != 3 || *m != 3 {
		t.Errorf("defaults %d and %d", n, *m)
	}
}
