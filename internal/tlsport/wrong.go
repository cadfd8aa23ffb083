package tlsport

import (
	"io"
	"net"
	"strings"
	"time"
)

// headBytes is how much of a connection's beginning is examined.
const headBytes = 512

// answerTime bounds how long an answer to a client that speaks something else may take.
const answerTime = time.Second

// Speech is the protocol of a client, by its first bytes.
type Speech string

// The protocols that clients speak by mistake.
const (
	TLS   Speech = "TLS"
	HTTP  Speech = "HTTP"
	Other Speech = "something else without TLS"
)

// Guess returns the protocol of a client, by its first bytes (four or more).
func Guess(first []byte) Speech {
	if len(first) > 1 && first[0] == recordHandshake && first[1] == 3 {
		return TLS
	}
	for _, method := range []string{"GET ", "HEAD", "POST", "PUT ", "DELE", "OPTI", "PATC", "PRI ", "CONN"} {
		if strings.HasPrefix(string(first), method) {
			return HTTP
		}
	}
	return Other
}

// alert is TLS's own word for a client that began wrongly: fatal, protocol_version.
var alert = string([]byte{0x15, 3, 1, 0, 2, 2, 70})

// answer reports to a client of a port with TLS that it should speak TLS. ZooKeeper's clients read the alert
// as an impossible length, and ours knows it.
func answer(c net.Conn, first []byte) Speech {
	s := Guess(first)
	if s == HTTP {
		Say(c, httpAnswer("This port speaks TLS: use https://, or the port without TLS."))
	} else {
		Say(c, alert)
	}
	return s
}

// AnswerPlain tells a client of ZooKeeper's plain port that speaks TLS or HTTP which protocol the port speaks.
// TLS clients of any make report text in place of TLS as such.
func AnswerPlain(c net.Conn, s Speech) {
	switch s {
	case TLS:
		Say(c, "this port speaks ZooKeeper's protocol without TLS\n")
	case HTTP:
		Say(c, httpAnswer("This port speaks ZooKeeper's protocol. HTTP has a port of its own (admin.serverPort)."))
	}
}

func httpAnswer(text string) string {
	return "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" + text + "\n"
}

// Say sends a last text to a client that gets no other answer.
func Say(c net.Conn, text string) {
	if c.SetDeadline(time.Now().Add(answerTime)) != nil {
		return
	}
	if _, err := io.WriteString(c, text); err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, c, 64<<10) // bytes that are not read would turn the close into a reset
	}
}

// PlainError reports that a client of a port with TLS spoke without it. It has had its answer.
type PlainError struct{ Speech Speech }

func (e *PlainError) Error() string {
	if e.Speech == HTTP {
		return "the client speaks HTTP without TLS, and this port has TLS only"
	}
	return "the client speaks without TLS, and this port has TLS only"
}
