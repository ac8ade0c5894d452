package nearest

import "testing"

func TestTo(t *testing.T) {
	names := []string{"resnet18", "resnet50", "lenet"}
	for word, want := range map[string]string{
		"resnet5": "resnet50", "ResNet18": "resnet18", "lnet": "lenet", "letne": "lenet", "": "", "x": "",
		"transformer": "", "resnet05": "resnet50", "le": "", "len": "lenet", "re": "", "res": "resnet18",
	} {
		if got := To(word, names); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"resnet", "resnet50", 2},
		{"ab", "ba", 1}, {"resnet81", "resnet18", 1}, {"same", "same", 0}} {
		if got := distance(c.a, c.b); got != c.want || distance(c.b, c.a) != got {
			t.Errorf("from %q to %q: %d edits, want %d", c.a, c.b, got, c.want)
		}
	}
}
