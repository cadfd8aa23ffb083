package peerkeys

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"

	"github.com/zk-lite/zk-lite/internal/durable"
)

// Key names a server's public key: the SHA-256 of its SubjectPublicKeyInfo (RFC 5280, 4.1.2.7).
type Key [sha256.Size]byte

// MarshalText implements encoding.TextMarshaler: hexadecimal.
func (k Key) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler. An error shows the text.
func (k *Key) UnmarshalText(text []byte) error {
	if b, err := hex.DecodeString(string(text)); err == nil && len(b) == len(k) {
		copy(k[:], b)
		return nil
	}
	return fmt.Errorf("key %.80q is not %d hexadecimal digits", text, 2*len(k))
}

// Short is the key's beginning, for people who compare two.
func (k Key) Short() string { return hex.EncodeToString(k[:8]) }

const (
	ownFile   = "peer.key"
	tableFile = "peers.json"
)

// loadOwn reads this server's private key, and makes one if there is none.
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

// certificate is what TLS needs around the key. Nobody looks at anything in it but the key.
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
