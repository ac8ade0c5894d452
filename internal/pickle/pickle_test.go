package pickle

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Values, of pickles that CPython's pickletools.dis reads alike.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		in   string
		raw  bool
		want any
	}{
		{"\x80\x02(K\x01J\xff\xff\xff\xffM\x01\x02N\x88\x89t.", false,
			Tuple{int64(1), int64(-1), int64(513), nil, true, false}},
		{"\x80\x02G\x3f\xf0\x00\x00\x00\x00\x00\x00.", false, 1.0},
		{"\x80\x02](K\x01K\x02e.", false, &List{[]any{int64(1), int64(2)}}},
		{"\x80\x02}q\x00U\x01aK\x01s.", false, &Dict{[]Item{{"a", int64(1)}}}},
		{"\x80\x02U\x02\xff\xfe.", true, Bytes{4, []byte("\xff\xfe")}},
		{"\x80\x04C\x03abc.", false, Bytes{4, []byte("abc")}},
		{"\x80\x04\x8c\x01a\x94h\x00\x86.", false, Tuple{"a", "a"}},
		{"\x80\x02cos\nsystem\nU\x04true\x85R.", false, &Object{Class: "os.system"}},
		{"\x80\x02cm\nf\nK\x07\x85R.", false, int64(7)}, // of the machine's own functions
		{"\x80\x02U\x02idQ.", false, "value of id"},
	} {
		m := &Machine{In: []byte(c.in), RawStrings: c.raw, Functions: map[Global]Function{"m.f": First},
			Persistent: func(id any) (any, error) { return fmt.Sprint("value of ", id), nil }}
		got, err := m.Run()
		if err != nil || !reflect.DeepEqual(got, c.want) || m.At != len(c.in) {
			t.Errorf("%q: %#v, want %#v; %v; %d of %d bytes", c.in, got, c.want, err, m.At, len(c.in))
		}
	}
}

func TestLookup(t *testing.T) {
	for _, raw := range []bool{false, true} { // keys of Python 2 are bytes then
		m := &Machine{In: []byte("\x80\x02}(U\x01aK\x01K\x05K\x02u."), RawStrings: raw}
		v, err := m.Run()
		if err != nil {
			t.Fatal(err)
		}
		if d := v.(*Dict); d.Lookup("a") != any(int64(1)) || d.Lookup("b") != nil {
			t.Errorf("%#v", d)
		}
	}
}

func TestErrors(t *testing.T) {
	for in, want := range map[string]string{
		"\x80\x02U\x05abc.":      "cut short",
		"\x80\x02U\x02\xff\xfe.": "not UTF-8",
		"\x80\x02P1\n.":          "PERSID",
		"\x80\x02U\x02idQ.":      "not in the pickle",
		"\x80\x02\x82\x01.":      "EXT1",
		"\x80\x01.":              "protocol",
		"\x80\x02.":              "a value is missing",
		"\x80\x02(.":             "a mark in place of a value",
		"\x80\x02K\x01a.":        "a value is missing",
		"\x80\x02h\x05.":         "no value 5",
		"\x80\x02K\x01K\x02R.":   "a call of a number or constant",
	} {
		if v, err := (&Machine{In: []byte(in)}).Run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", in, v, err, want)
		}
	}
	bomb := "\x80\x02]q\x00" + strings.Repeat("(h\x00h\x00h\x00h\x00e", 500_000) + "."
	if _, err := (&Machine{In: []byte(bomb)}).Run(); err == nil ||
		!strings.Contains(err.Error(), "take more than 40 MB") {
		t.Error(err)
	}
}
