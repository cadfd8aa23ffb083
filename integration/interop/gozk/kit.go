package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"reflect"
	"time"

	"github.com/go-zookeeper/zk"
)

// suite is the ensemble and the way to ask the test for something.
type suite struct {
	hosts []string
	in    *bufio.Reader
	out   *json.Encoder
}

// failure is the value of the panics of checks.
type failure string

// absent is the value of those that find that the client lacks what they are about.
type absent string

func (s *suite) say(message map[string]any) {
	if err := s.out.Encode(message); err != nil {
		log.Fatal(err)
	}
}

// ask asks the test to do something to a server, and waits until it is done.
func (s *suite) ask(message map[string]any) {
	s.say(message)
	line, err := s.in.ReadString('\n')
	if err != nil || line != "done\n" {
		log.Fatalf("the test answers %q, %v", line, err)
	}
}

func failf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func must[T any](x T, err error) T {
	if err != nil {
		failf("%v", err)
	}
	return x
}

func ok(err error) {
	if err != nil {
		failf("%v", err)
	}
}

func equal(got, want any) {
	if !reflect.DeepEqual(got, want) {
		failf("%v, want %v", got, want)
	}
}

func fails(err, want error) {
	if !errors.Is(err, want) {
		failf("error %v, want %v", err, want)
	}
}

// receive takes one element of a channel.
func receive[T any](c <-chan T, what string) T {
	select {
	case x := <-c:
		return x
	case <-time.After(patience):
		failf("waited %v for: %s", patience, what)
		panic("not reached")
	}
}

func event(c <-chan zk.Event, kind zk.EventType, path string) {
	e := receive(c, fmt.Sprintf("%s %s", kind, path))
	ok(e.Err)
	equal(e.Type.String()+" "+e.Path, kind.String()+" "+path)
}

// client is a connection and the states it has been in.
type client struct {
	*zk.Conn
	events <-chan zk.Event
}

func (s *suite) connect(hosts ...string) *client {
	if hosts == nil {
		hosts = s.hosts
	}
	c, events, err := zk.Connect(hosts, session, zk.WithLogger(log.New(os.Stderr, "", log.Ltime)), zk.WithDialer(dial))
	ok(err)
	k := &client{c, events}
	k.await(zk.StateHasSession)
	return k
}

func (c *client) await(state zk.State) {
	for {
		if e := receive(c.events, state.String()); e.State == state {
			return
		}
	}
}

func text(data []byte, _ *zk.Stat, err error) string {
	ok(err)
	return string(data)
}

func (c *client) sync() { must(c.Sync("/")) }

// tlsVariable names the directory with ca.pem and client.pem; empty: without TLS.
const tlsVariable = "ZK_LITE_INTEROP_TLS"

// dial is how this client speaks TLS: it has no other way than a dialer of one's own.
func dial(network, address string, timeout time.Duration) (net.Conn, error) {
	d := &net.Dialer{Timeout: timeout}
	dir := os.Getenv(tlsVariable)
	if dir == "" {
		return d.Dial(network, address)
	}
	ca, err := os.ReadFile(dir + "/ca.pem")
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{RootCAs: x509.NewCertPool()}
	if !cfg.RootCAs.AppendCertsFromPEM(ca) {
		return nil, errors.New("ca.pem has no certificate")
	}
	pair, err := tls.LoadX509KeyPair(dir+"/client.pem", dir+"/client.pem")
	if err != nil {
		return nil, err
	}
	cfg.Certificates = []tls.Certificate{pair}
	return tls.DialWithDialer(d, network, address, cfg)
}
