package serve

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// 1,000 malformed requests, slow clients and a flood leave a server that answers as before, in bounded memory.
func TestHostileClients(t *testing.T) {
	s := create(t, predictor(t, "conv6"), Options{Batch: 4, Queue: 8, MaxBytes: 1 << 20, Timeout: 2 * time.Second,
		Connections: 60, DecodeMemory: 64 << 20, Workers: 2})
	address, _ := start(t, s)
	url, good := "http://"+address+"/predict", picture(t, 1, 40, 40)
	_, want := post(t, url, "", bytes.NewReader(good))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most := heap(), uint64(0)

	r := rand.New(rand.NewPCG(5, 6))
	kind, body := form(t, []string{"a.png"}, [][]byte{good})
	raw := fmt.Sprintf("POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(good), good)
	whole := fmt.Sprintf("POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", kind,
		body.Len(), body)
	bomb := bytes.Clone(good) // declares 60,000 × 60,000 pixels
	copy(bomb[16:], []byte{0, 0, 234, 96, 0, 0, 234, 96})
	texts := []string{raw, whole,
		fmt.Sprintf("POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(bomb), bomb),
		"POST /predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
		"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\nabc",
		"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("y", 1<<17) + "\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "", "\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(20) // a server waits for half a second before it closes a connection with bytes left
	answers := map[string]int{}
	for i := range 1000 {
		b := []byte(texts[i%len(texts)])
		for k := 0; len(b) > 0 && k < 1+r.IntN(8) && i >= len(texts); k++ { // the first ones as they are
			switch at := r.IntN(len(b)); r.IntN(4) {
			case 0:
				b[at] = byte(r.Uint32())
			case 1:
				b = b[:at]
			case 2:
				b = append(b[:at], b[min(len(b), at+r.IntN(40)):]...)
			default:
				b = bytes.Join([][]byte{b[:at], b[r.IntN(len(b)):]}, nil)
			}
		}
		group.Go(func() error {
			status := exchange(t, address, b)
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
			return nil
		})
		if i%100 == 0 {
			if status, got := post(t, url, "", bytes.NewReader(good)); status != 200 || got != want {
				t.Errorf("among malformed requests: %d %s", status, got)
			}
			most = max(most, heap())
		}
	}
	group.Wait()
	if len(answers) < 4 || answers["400"] == 0 || answers["413"] == 0 || answers["500"] > 0 {
		t.Errorf("answers by status: %v", answers)
	}

	// Slow clients hold all connections but a few, and send a byte now and then.
	var slow []net.Conn
	for range 50 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
		slow = append(slow, c)
	}
	for range 3 {
		for _, c := range slow {
			c.Write(make([]byte, 10_000))
		}
		if status, got := post(t, url, "", bytes.NewReader(good)); status != 200 || got != want {
			t.Errorf("beside slow clients: %d %s", status, got)
		}
		most = max(most, heap())
	}
	until(t, func() bool { return metric(t, address, `rna_requests_total{code="408"}`) >= 50 })

	// A flood of more clients than the queue, and than there may be connections.
	status := map[int]int{}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	group.SetLimit(-1)
	floods := 0
	for ; floods < 5 && status[429] == 0; floods++ { // on a busy machine one may leave the queue short
		for range 100 {
			group.Go(func() error {
				for range 10 {
					code := 0
					if r, err := client.Post(url, "", bytes.NewReader(good)); err == nil {
						b, _ := io.ReadAll(r.Body)
						r.Body.Close()
						if code = r.StatusCode; code == 200 && string(b) != want {
							t.Errorf("in the flood: %s", b)
						}
					}
					mu.Lock()
					status[code]++
					mu.Unlock()
				}
				return nil
			})
		}
		group.Wait()
	}
	client.CloseIdleConnections()
	most = max(most, heap())
	if status[200] == 0 || status[429] == 0 || status[0] == 0 || status[200]+status[429]+status[0] != 1000*floods {
		t.Errorf("answers of the flood by status: %v", status)
	}
	if most > before+32<<20 {
		t.Errorf("%d MB of heap, %d before", most>>20, before>>20)
	}
	until(t, func() bool {
		r, err := http.Post(url, "", bytes.NewReader(good))
		if err != nil {
			return false // connections of the flood are still being closed
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode == 200 && string(b) == want
	})
	for _, name := range []string{"rna_images_in_progress", "rna_request_body_bytes", "rna_requests_in_progress"} {
		until(t, func() bool { return metric(t, address, name) == 0 })
	}
	if metric(t, address, "rna_connections_refused_total") == 0 {
		t.Error("no connection was refused")
	}
}

// exchange sends bytes, and returns the status of the answer, "" for none.
func exchange(t *testing.T, address string, b []byte) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	c.Write(b)
	c.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(c)
	_, rest, _ := strings.Cut(string(answer), "HTTP/1.1 ")
	status, _, _ := strings.Cut(rest, " ")
	return status
}
