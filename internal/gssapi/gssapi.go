// Package gssapi is the server's side of the SASL mechanism GSSAPI (RFC 4752): authentication only, without layers
// of integrity or confidentiality. An interface provides the security contexts, which are Kerberos's.
//
// It knows no keys and no connections, and starts no goroutine.
package gssapi

import (
	"errors"
	"fmt"
)

// maxToken bounds a token in bytes: the largest that Windows makes, of a user with many groups.
const maxToken = 64 << 10

// noLayer is the only security layer that is offered (RFC 4752, 3.3).
const noLayer = 1

// Acceptor establishes security contexts with clients (RFC 2743, GSS_Accept_sec_context), of mechanisms that need one
// token of the client's.
type Acceptor interface {
	// Accept accepts that token. reply is for the client; nil: there is none.
	Accept(token []byte) (c Context, reply []byte, err error)
}

// Context is a security context that is established.
type Context interface {
	// Initiator is the name of the client.
	Initiator() string
	// Wrap and Unwrap protect the integrity of messages, without sealing them. Each is used once.
	Wrap(message []byte) (token []byte, err error)
	Unwrap(token []byte) (message []byte, err error)
}

// Exchange is one client's authentication. It is used once, by one goroutine at a time.
type Exchange struct {
	acceptor Acceptor
	context  Context
	next     func(token []byte) (reply []byte, user string, err error)
}

// New begins an exchange.
func New(a Acceptor) *Exchange {
	e := &Exchange{acceptor: a}
	e.next = e.accept
	return e
}

// Next takes the client's next token and returns the server's. user is empty until the client has proved its
// identity. After an error, and after the last token, the exchange is of no further use.
func (e *Exchange) Next(token []byte) (reply []byte, user string, err error) {
	step := e.next
	e.next = ended
	if len(token) > maxToken {
		return nil, "", fmt.Errorf("a token of %d bytes; %d are allowed", len(token), maxToken)
	}
	return step(token)
}

func ended([]byte) ([]byte, string, error) { return nil, "", errors.New("the exchange has ended") }

func (e *Exchange) accept(token []byte) (reply []byte, user string, err error) {
	if len(token) == 0 {
		return nil, "", errors.New("an empty first token: the client may want another mechanism (DIGEST-MD5)")
	}
	if e.context, reply, err = e.acceptor.Accept(token); err != nil {
		return nil, "", err
	}
	if reply == nil {
		return e.offer(nil)
	}
	e.next = e.offer
	return reply, "", nil
}

// offer lists the layers that there are, and announces that later messages are not accepted.
func (e *Exchange) offer(token []byte) (reply []byte, user string, err error) {
	if len(token) > 0 {
		return nil, "", fmt.Errorf("a token of %d bytes, and it is the server's turn", len(token))
	}
	e.next = e.choice
	reply, err = e.context.Wrap([]byte{noLayer, 0, 0, 0})
	return reply, "", err
}

// choice reads the client's choice. The client may name an identity to act for, which means
// nothing here.
func (e *Exchange) choice(token []byte) (reply []byte, user string, err error) {
	m, err := e.context.Unwrap(token)
	if err != nil {
		return nil, "", err
	}
	if len(m) < 4 || m[0] != noLayer {
		return nil, "", errors.New("the client wants a security layer, and none was offered")
	}
	return nil, e.context.Initiator(), nil
}
