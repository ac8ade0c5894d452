package cache

import (
	"os"
	"testing"
	"time"
)

// One process at a time makes a file, and no lock stays behind.
func TestAlone(t *testing.T) {
	folder := t.TempDir()
	done := Alone(folder, "x")
	begins, second := make(chan bool), make(chan bool, 1)
	go func() {
		begins <- true
		done := Alone(folder, "x")
		_, there := Read(folder, "x")
		done()
		second <- there
	}()
	<-begins
	select {
	case <-second:
		t.Fatal("the second did not wait for the first")
	case <-time.After(100 * time.Millisecond):
	}
	Write(folder, "x", []byte("made"))
	done()
	if !<-second {
		t.Error("the second did not find the file of the first")
	}
	if list, err := os.ReadDir(folder); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	Alone("", "x")()
	Alone("/dev/null/no", "x")()
}
