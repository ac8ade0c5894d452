package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"onlinerna/train/evaluate"
)

// rna serve answers as rna predict, and ends without an error when it is told to stop.
func TestServe(t *testing.T) {
	photos, trained := photographs(t, 4, 40), filepath.Join(t.TempDir(), "run")
	runRNA(t, "train", "--data", photos, "--model", "conv6", "--image-size", "32", "--epochs", "1", "--rna", "off",
		"--batch", "8", "-q", "-o", trained)
	files, _ := filepath.Glob(filepath.Join(photos, "val", "*", "*"))
	var want []evaluate.Prediction
	_, text, _ := runRNA(t, append([]string{"predict", trained, "--device", "cpu", "--json"}, files...)...)
	if err := json.Unmarshal([]byte(text), &want); err != nil || len(want) < 4 {
		t.Fatal(err, text)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	var log bytes.Buffer
	status := make(chan int, 1)
	go func() {
		s := run(ctx, []string{"serve", trained, "--listen", "127.0.0.1:0", "--device", "cpu", "--batch", "4"}, w, &log)
		w.Close()
		status <- s
	}()
	line := make([]byte, 200)
	n, err := r.Read(line)
	if err != nil {
		t.Fatal(err, log.String())
	}
	url := strings.TrimSpace(string(line[:n]))
	for i, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Post(url, "image/jpeg", bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		var got []evaluate.Prediction
		err = json.NewDecoder(answer.Body).Decode(&got)
		answer.Body.Close()
		if err != nil || len(got) != 1 || got[0].Path != "-" || !reflect.DeepEqual(got[0].Guesses, want[i].Guesses) {
			t.Errorf("%s: %+v, %v, want %+v", file, got, err, want[i])
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if s := <-status; s != 0 || !strings.Contains(log.String(), "does not depend on other images") ||
		!strings.Contains(log.String(), "stopped") {
		t.Errorf("status %d, %s", s, log.String())
	}
	for want, args := range map[string][]string{
		"no-such-weights": {"no-such-weights"}, "--queue 3 holds less than a --batch of 4": {trained, "--queue", "3", "--batch", "4"},
		"--top 0": {trained, "--top", "0"}, "--batch-wait -1s": {trained, "--batch-wait", "-1s"}, "2 arguments": {trained, files[0]},
		"--listen nowhere": {trained, "--listen", "nowhere"}, "name the weights once": {trained, "--weights", trained},
	} {
		fails(t, append([]string{"serve"}, args...), want)
	}
}
