//go:build privileged

package hostile_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// overHTTP sends every request of the HTTP port, pipelined where there is no body, reading the answers; then those with
// the largest answers without reading.
func overHTTP(a *arena) {
	queue := make(chan *httpShape)
	var done sync.WaitGroup
	for i := range 16 {
		s := a.e.Server(1 + i%3)
		done.Go(func() {
			for x := range queue {
				sendHTTP(s, x, "hostile:hostile", 2*time.Second)
			}
		})
	}
	for _, x := range a.chosenHTTP() {
		if len(a.dead()) == 0 {
			queue <- x
		}
	}
	close(queue)
	done.Wait()
}

// sendHTTP sends a request several times and reads answers until they are there, or the time is over: some operations
// wait for what never comes.
func sendHTTP(s *cluster.Server, x *httpShape, credentials string, limit time.Duration) (answers int, size int64) {
	nc, err := net.DialTimeout("tcp", s.HTTPAddr(), limit)
	if err != nil {
		return 0, 0
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(limit))
	n := 1
	if x.body == nil && x.method == http.MethodGet {
		n = 4
	}
	go func() { _, _ = io.WriteString(nc, strings.Repeat(x.bytes(credentials), n)) }()
	r := bufio.NewReader(nc)
	for range n {
		answer, err := http.ReadResponse(r, &http.Request{Method: x.method})
		if err != nil {
			return answers, size
		}
		got, _ := io.Copy(io.Discard, answer.Body)
		size += got
		answer.Body.Close()
		answers++
	}
	return answers, size
}

// deafHTTP asks for much over many connections and reads nothing.
func deafHTTP(a *arena) {
	var all []net.Conn
	defer func() {
		for _, nc := range all {
			nc.Close()
		}
	}()
	for _, target := range []string{large + "?raw", wide + "?children=true", wide + "?about=true"} {
		for range 60 {
			nc, err := net.Dial("tcp", a.e.Server(2).HTTPAddr())
			if err != nil {
				a.errorf("%v", err)
				return
			}
			all = append(all, nc)
			q := "GET /v1/znodes" + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n"
			_, _ = io.WriteString(nc, strings.Repeat(q, 40))
		}
		a.rounds(3)
	}
}

// bodiesThatStop announces bodies, the largest first, until there is no room for one more, and sends none.
func bodiesThatStop(a *arena) {
	for _, x := range []struct{ size, n int }{{httpBodyRoom, 64}, {100, 8}, {10, 16}, {1, 32}} {
		for range x.n {
			nc, err := net.Dial("tcp", a.e.Server(2).HTTPAddr())
			if err != nil {
				a.errorf("%v", err)
				return
			}
			defer nc.Close()
			fmt.Fprintf(nc, "POST /v1/multi HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", x.size)
		}
		a.rounds(3) // so that the largest are first at the server, too
	}
}

// floodHTTP takes all HTTP connections of a server that one address may have.
func floodHTTP(a *arena) {
	const clients, each = 32, 520
	enough := syscall.Rlimit{Cur: 20_000, Max: 20_000}
	if have := (syscall.Rlimit{}); syscall.Getrlimit(syscall.RLIMIT_NOFILE, &have) == nil && have.Cur < enough.Cur {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &enough); err != nil {
			a.t.Fatalf("room for %d open files: %v", enough.Cur, err)
		}
	}
	attacker := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 7)}, Timeout: sessionTimeout}
	var done sync.WaitGroup
	over := make(chan struct{})
	var opened atomic.Int64
	for range clients {
		done.Go(func() {
			for range each {
				nc, err := attacker.Dial("tcp", a.e.Server(2).HTTPAddr())
				if err != nil {
					break // the machine's own limits
				}
				defer nc.Close()
				_, _ = io.WriteString(nc, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n") // a silent client is disconnected soon
				opened.Add(1)
			}
			<-over
		})
	}
	wait.Succeeds(a.t, "the connections", func() error {
		if n := opened.Load(); n < clients*each {
			return fmt.Errorf("%d of %d", n, clients*each)
		}
		return nil
	})
	for _, w := range a.witnesses {
		w.forget()
	}
	a.rounds(3)
	close(over)
	done.Wait()
}

// zeros restores, as an administrator, a small backup of many zeros.
func zeros(a *arena) {
	const znodes, size = 20, 64 << 20
	machine := state.New()
	data := make([]byte, size)
	for i := range znodes {
		x := &znode.Txn{Zxid: znode.Zxid(i + 1), TimeMillis: 1}
		_, _, code := machine.Tree().Create(x, &znode.CreateRequest{Path: fmt.Sprint("/zeros", i), Data: data, ACL: znode.OpenACL})
		if code != znode.OK {
			a.t.Fatalf("create: %v, want OK", code)
		}
	}
	frozen := machine.Snapshot()
	defer frozen.Release()
	var file bytes.Buffer
	if err := frozen.Write(&file); err != nil {
		a.t.Fatal(err)
	}
	text := file.String()
	for _, query := range []string{"?dry_run=true&other_ensemble=true", "?other_ensemble=true"} {
		x := &httpShape{method: http.MethodPost, pattern: "/v1/snapshot" + query, body: func() string { return text }}
		sendHTTP(a.e.Server(2), x, cluster.SuperCredentials, 3*sessionTimeout)
	}
}
