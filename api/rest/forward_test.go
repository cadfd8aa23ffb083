package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"reflect"
	"syscall"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
)

func FuzzParseClient(f *testing.F) {
	cert := certs.Authority(f, "ca").Cert
	known, err := json.Marshal(client{Address: "10.0.0.1", Certificate: cert.Raw, Local: true})
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", "{}", "null", `{"address":1}`, `{"certificate":""}`, `{"certificate":"MA=="}`, string(known)} {
		f.Add(text)
	}
	if c, err := parseClient(string(known)); err != nil || !c.cert.Equal(cert) || c.Address != "10.0.0.1" || !c.Local {
		f.Errorf("%+v, %v", c, err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseClient(text)
		if err != nil && !reflect.DeepEqual(c, client{}) || c.Certificate != nil && c.cert == nil {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

// TestRegression_NoAnswer_NamesTheRoot: a person saw the whole chain of errors, in which the reason came last.
func TestRegression_NoAnswer_NamesTheRoot(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 3), Port: 2888}
	chain := func(err error) error {
		return &url.Error{Op: "Get", URL: "http://3/metrics?", Err: fmt.Errorf("mux: dialling 3 for a HTTP connection: %w", err)}
	}
	dial := func(err error) error { return chain(&net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: err}) }
	for _, c := range []struct {
		err          error
		text, reason string
	}{
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "connection refused (10.0.0.3:2888)", "down: connection refused (10.0.0.3:2888)"},
		{dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "no route to host (10.0.0.3:2888)", "down: no route to host (10.0.0.3:2888)"},
		{dial(os.NewSyscallError("connect", syscall.ETIMEDOUT)), "no answer in time (10.0.0.3:2888)", "down: no answer in time (10.0.0.3:2888)"},
		{dial(os.ErrDeadlineExceeded), "no answer in time (10.0.0.3:2888)", "down: no answer in time (10.0.0.3:2888)"},
		{chain(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "zk3", IsNotFound: true}}),
			"no such host (zk3)", "down: no such host (zk3)"},
		{chain(&net.OpError{Op: "read", Net: "tcp", Addr: at, Err: os.ErrDeadlineExceeded}), "no answer in time (10.0.0.3:2888)", "no answer in time (10.0.0.3:2888)"},
		{chain(&net.OpError{Op: "read", Net: "tcp", Addr: at, Err: os.NewSyscallError("read", syscall.ECONNRESET)}),
			"connection reset by peer (10.0.0.3:2888)", "connection reset by peer (10.0.0.3:2888)"},
		{chain(context.DeadlineExceeded), "no answer in time (zk3:2888)", "no answer in time (zk3:2888)"},
		{chain(io.EOF), "it has closed the connection (zk3:2888)", "it has closed the connection (zk3:2888)"},
		{io.ErrUnexpectedEOF, "it has closed the connection (zk3:2888)", "it has closed the connection (zk3:2888)"},
		{chain(errors.New("3 refused the connection: this server serves no HTTP")), "3 refused the connection: this server serves no HTTP (zk3:2888)",
			"3 refused the connection: this server serves no HTTP (zk3:2888)"},
	} {
		p := ProblemOf(noAnswer(&state.Member{ID: 3, Peer: "zk3:2888:3888"}, c.err), false)
		if p.Status != 502 || p.Detail != "server: server 3 does not answer: "+c.text || p.Reason != c.reason || p.Cause != c.err.Error() {
			t.Errorf("%v: %d %q, reason %q, cause %q; want the text %q and the reason %q",
				c.err, p.Status, p.Detail, p.Reason, p.Cause, c.text, c.reason)
		}
	}
}
