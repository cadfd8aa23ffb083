package tlsport

import (
	"io"
	"net"
	"strings"
	"time"
)

// headBytes is how much of a connection's beginning is looked at.
const headBytes = 512

// answerTime bounds how long an answer to a client that speaks something else may take.
const answerTime = time.Second

// Speech is what a client speaks, by its first bytes.
type Speech string

// What clients speak by mistake.
const (
	TLS   Speech = "TLS"
	HTTP  Speech = "HTTP"
	Other Speech = "something else without TLS"
)

// Guess returns what a client speaks, by its first bytes (four or more).
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

// AnswerPlain reports to a client of ZooKeeper's plain port that speaks TLS or HTTP what the port speaks. A TLS
// client of any make reports text in place of TLS as such.
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

// Say sends a last word to a client that gets no other.
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
