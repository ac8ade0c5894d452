package data

import (
	"encoding/json"
	"testing"
)

func TestMaxBad(t *testing.T) {
	for _, c := range []struct {
		text  string
		value MaxBad
		of    map[int]int // allowed, by the number of images
	}{
		{"auto", UsualBad, map[int]int{1: 1, 9: 1, 51: 6, 100: 10, 500: 10, 1000: 10, 5000: 50, 1281167: 12811}},
		{"0", 0, map[int]int{51: 0, 1000: 0}},
		{"1", 1, map[int]int{51: 1}},
		{"20", 20, map[int]int{10: 10, 51: 20}},
		{"0.05", .05, map[int]int{51: 2, 100: 5}},
		{"5%", .05, map[int]int{51: 2, 100: 5}},
		{"0.29", .29, map[int]int{100: 29}},
		{"all", AllBad, map[int]int{51: 51}},
		{"100%", AllBad, map[int]int{51: 51}},
	} {
		got, err := ParseMaxBad(c.text)
		if err != nil || got != c.value || got.Check() != nil {
			t.Errorf("%s: %v, %v", c.text, got, err)
		}
		for n, want := range c.of {
			if k := got.Of(n); k != want {
				t.Errorf("%s of %d images: %d, want %d", c.text, n, k, want)
			}
		}
		b, err := json.Marshal(got)
		var again MaxBad
		if err == nil {
			err = json.Unmarshal(b, &again)
		}
		if err != nil || again != got {
			t.Errorf("%s: %s, %v, %v", c.text, b, again, err)
		}
	}
	for _, s := range []string{"", "-1", "1.5", "x", "120%", "NaN", "-5%", "1e30"} {
		if m, err := ParseMaxBad(s); err == nil {
			t.Errorf("%q is %v", s, m)
		}
	}
	var m MaxBad
	if err := json.Unmarshal([]byte(`[1]`), &m); err == nil {
		t.Error("a list is no limit")
	}
}
