package httpload

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

const (
	dialTimeout = 5 * time.Second
	// answerTime is how long an answer may take: longer than any wait for a lock here.
	answerTime = 30 * time.Second
	// maxAnswer bounds an answer's body: more than servers send for one znode.
	maxAnswer = 64 << 20
	// readBytes is the buffer of a connection, of which a thousand may be open.
	readBytes = 4 << 10
)

// conn is one connection, which reconnects after an error.
type conn struct {
	host string
	tls  *tls.Config // nil: without TLS
	nc   net.Conn    // nil before the first request and after an error
	r    *bufio.Reader
	out  []byte
	body []byte // of the last answer
}

// request is an HTTP request.
type request struct {
	method, target string
	header         string // further lines, each with its end
	body           []byte
}

// StatusError is an answer of an unexpected status.
type StatusError struct {
	Status int
	Body   string // its begin
}

// Error is the status and the beginning of the body.
func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Body) }

// send writes a request.
func (c *conn) send(ctx context.Context, q *request) error {
	if c.nc == nil {
		d := net.Dialer{Timeout: dialTimeout}
		nc, err := d.DialContext(ctx, "tcp", c.host)
		if err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		if nc, err = load.Secure(ctx, nc, c.tls, c.host); err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		c.nc, c.r = nc, bufio.NewReaderSize(nc, readBytes)
	}
	b := append(c.out[:0], q.method...)
	b = append(b, ' ')
	b = append(b, q.target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, c.host...)
	b = append(b, "\r\n"...)
	b = append(b, q.header...)
	if q.body != nil {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(q.body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	c.out = append(b, q.body...)
	c.nc.SetDeadline(time.Now().Add(answerTime))
	if _, err := c.nc.Write(c.out); err != nil {
		c.close()
		return fmt.Errorf("%s %s: %w", q.method, q.target, err)
	}
	return nil
}

// do sends a request and reads the answer, whose body is valid until the next one.
// A status other than 2xx is a *StatusError.
func (c *conn) do(ctx context.Context, q *request) ([]byte, error) {
	if err := c.send(ctx, q); err != nil {
		return nil, err
	}
	a, err := c.head()
	if err == nil {
		err = c.read(a)
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("%s %s: %w", q.method, q.target, err)
	}
	if a.close {
		c.close()
	}
	if a.status/100 != 2 {
		return nil, &StatusError{a.status, string(c.body[:min(len(c.body), 200)])}
	}
	return c.body, nil
}

// answer has the parts of a header that matter here.
type answer struct {
	status  int
	length  int // of the body; below 0: until the end of the connection
	chunked bool
	close   bool
}

// head reads an answer's header.
func (c *conn) head() (answer, error) {
	a := answer{length: -1}
	line, err := c.line()
	if err != nil {
		return a, err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) || len(line) < len("HTTP/1.1 200") {
		return a, fmt.Errorf("%q is no answer of HTTP/1.1", line)
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return a, fmt.Errorf("a status: %w", err)
	}
	for {
		line, err := c.line()
		if err != nil {
			return a, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if a.length, err = strconv.Atoi(string(value)); err != nil || a.length < 0 {
				return a, fmt.Errorf("a Content-Length: %q", value)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			a.chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Connection")):
			a.close = bytes.EqualFold(value, []byte("close"))
		}
	}
	if a.status == 204 || a.status == 304 {
		a.length = 0
	}
	return a, nil
}

// line is the next one without its end; a longer one than the buffer is an error.
func (c *conn) line() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// read takes an answer's body.
func (c *conn) read(a answer) error {
	if a.chunked {
		var err error
		c.body, err = io.ReadAll(io.LimitReader(httputil.NewChunkedReader(c.r), maxAnswer))
		if err != nil {
			return err
		}
		_, err = c.line() // the empty one after the last chunk
		return err
	}
	if a.length < 0 || a.length > maxAnswer {
		return fmt.Errorf("a body of %d bytes: 0 to %d are possible", a.length, maxAnswer)
	}
	if cap(c.body) < a.length {
		c.body = make([]byte, a.length)
	}
	c.body = c.body[:a.length]
	_, err := io.ReadFull(c.r, c.body)
	return err
}

func (c *conn) close() {
	if c.nc != nil {
		c.nc.Close()
		c.nc = nil
	}
}
