package peerkeys

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/durable"
	"github.com/zk-lite/zk-lite/internal/tlsport"
)

// loadOwn reads this server's private key, or makes one if there is none.
func loadOwn(dir string) (ed25519.PrivateKey, error) {
	path := filepath.Join(dir, ownFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeOwn(dir, path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading this server's key: %w", err)
	}
	if block, _ := pem.Decode(text); block != nil {
		if any, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if own, ok := any.(ed25519.PrivateKey); ok {
				return own, nil
			}
		}
	}
	return nil, fmt.Errorf("%s, this server's key for the others, is damaged: restore it, or remove it and join again "+
		"with a new one (`zk-lite member token`)", path)
}

func makeOwn(dir, path string) (ed25519.PrivateKey, error) {
	_, own, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making this server's key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return nil, fmt.Errorf("making this server's key: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making %s: %w", dir, err)
	}
	err = durable.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		return nil, fmt.Errorf("writing this server's key: %w", err)
	}
	return own, nil
}

// certificate wraps the key for TLS. No server checks anything in it but the key.
func certificate(own ed25519.PrivateKey) (tls.Certificate, Key, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, own.Public(), own)
	if err != nil {
		return tls.Certificate{}, Key{}, fmt.Errorf("making this server's certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, Key{}, fmt.Errorf("making this server's certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own, Leaf: leaf}, keyOf(leaf), nil
}

func keyOf(c *x509.Certificate) Key { return sha256.Sum256(c.RawSubjectPublicKeyInfo) }

// handshakeTime bounds a handshake.
const handshakeTime = 5 * time.Second

type tlsConfigs struct{ server, client *tls.Config }

// newTLS returns the configurations. They do not verify certificates by authority and name: checkShown and CheckKey
// compare keys with the table.
func (k *Keys) newTLS(own tls.Certificate) tlsConfigs {
	both := &tls.Config{
		Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAnyClientCert, InsecureSkipVerify: true,
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
	}
	server := both.Clone()
	server.VerifyConnection = k.checkShown
	return tlsConfigs{server: server, client: both}
}

// checkShown rejects a handshake whose key belongs to no member.
func (k *Keys) checkShown(s tls.ConnectionState) error {
	key, _ := peerKey(s)
	k.mu.Lock()
	open := !k.member || isOneOf(key, k.table.Keys) || isOneOf(key, k.table.Removed) || k.tokenLocked()
	k.mu.Unlock()
	if open {
		return nil
	}
	if _, token, ok, _ := k.secret(); ok && !token {
		return nil
	}
	k.signal(k.met)
	return fmt.Errorf("its key %s is bound to no server of the ensemble; to let a server in: "+
		"`zk-lite member add` or `zk-lite member token`; one with the data of a former ensemble is emptied first",
		key.Short())
}

func isOneOf(key Key, all map[state.ServerID]Key) bool {
	for _, bound := range all {
		if bound == key {
			return true
		}
	}
	return false
}

// tokenLocked reports whether there is a valid one-time token, with which a server with a new key may join.
func (k *Keys) tokenLocked() bool {
	now := time.Now()
	for _, t := range k.tokens {
		if now.Before(t.until) {
			return true
		}
	}
	return false
}

// Listener puts TLS on the peer port. It does not bound the number of unfinished handshakes; its caller does.
func (k *Keys) Listener(l net.Listener) net.Listener {
	if k == nil || k.cfg.Off && !k.cfg.PlainToo {
		return l
	}
	return tlsport.New(l, tlsport.Options{
		Config: k.tls.server, PlainToo: k.cfg.PlainToo, Handshakes: tlsport.NewHandshakes(0, handshakeTime),
	})
}

// Client starts TLS on a connection to a server. If anyKey is set, the caller must check the other side's key
// (CheckKey) before it trusts it. Errors: those of the handshake, and a key that is not the one bound to the server.
// They close the connection.
func (k *Keys) Client(ctx context.Context, raw net.Conn, to state.ServerID, anyKey bool) (net.Conn, error) {
	if k == nil || k.cfg.Off {
		return raw, nil
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	c := tls.Client(raw, k.tls.client)
	err := c.HandshakeContext(ctx)
	if err == nil {
		k.noteShown(c, to)
	}
	if err == nil && !anyKey {
		err = k.CheckKey(c, to)
	}
	if err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("TLS with server %d: %w", to, err)
	}
	return c, nil
}

// noteShown remembers the key that a server has shown, which it does before it refuses this server's key.
func (k *Keys) noteShown(c net.Conn, by state.ServerID) {
	key, _ := k.KeyOf(c)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shown == nil {
		k.shown = map[state.ServerID]Key{}
	}
	k.shown[by] = key
}

// ShownBy reports which key a server showed when it was last called: the one that is bound to it, or another; neither
// if it was not reached or none is bound to it. It is safe on nil.
func (k *Keys) ShownBy(id state.ServerID) (bound, another bool) {
	if k == nil {
		return false, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	shown, was := k.shown[id]
	have, known := k.table.Keys[id]
	return was && known && shown == have, was && known && shown != have
}

// KeyOf returns the key that the other side of a connection has shown; ok is false if the connection is without TLS,
// and on nil.
func (k *Keys) KeyOf(c net.Conn) (key Key, ok bool) {
	if s, secure := tlsport.State(c); k != nil && secure {
		return peerKey(s)
	}
	return key, false
}

func peerKey(s tls.ConnectionState) (key Key, ok bool) {
	if len(s.PeerCertificates) == 0 {
		return key, false
	}
	return keyOf(s.PeerCertificates[0]), true
}

// errPlain reports that a connection proves no identity.
var errPlain = errors.New("the connection is without TLS")

// CheckKey returns why the other side of a connection is not the server with this id, as far as this server knows. It
// accepts connections without TLS if they are allowed, and every key while this server belongs to no ensemble.
func (k *Keys) CheckKey(c net.Conn, id state.ServerID) error {
	key, secure := k.KeyOf(c)
	if k == nil {
		return nil
	}
	if !secure {
		if k.cfg.Off || k.cfg.PlainToo {
			return nil
		}
		return errPlain
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	bound, known := k.table.Keys[id]
	switch {
	case !k.member || known && bound == key:
		return nil
	}
	k.signal(k.met)
	if !known {
		return fmt.Errorf("no key is bound to server %d; to let it in: `zk-lite member token %d`, or `zk-lite member "+
			"add` if it is no member", id, id)
	}
	return fmt.Errorf("server %d shows another key (%s) than the one bound to it (%s); if its disk was replaced: "+
		"`zk-lite member token %d`", id, key.Short(), bound.Short(), id)
}

// Bound reports whether the key that the other side of a connection has shown is bound to any server. It is true of
// connections without TLS.
func (k *Keys) Bound(c net.Conn) bool {
	key, secure := k.KeyOf(c)
	if !secure {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return isOneOf(key, k.table.Keys)
}

// WasRemoved reports whether the other side of a connection has shown the last key of a server that was removed.
func (k *Keys) WasRemoved(c net.Conn, id state.ServerID) bool {
	key, secure := k.KeyOf(c)
	if !secure {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	was, ok := k.table.Removed[id]
	return ok && was == key
}
