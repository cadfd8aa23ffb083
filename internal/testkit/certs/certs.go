// Package certs makes certificates for tests: authorities, the certificates that they sign and those that
// they revoke. It starts no goroutine, and writes files only where the caller wants them.
package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// TB is the part of testing.TB that is used.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Pair is a private key with its certificate.
type Pair struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
	// Issuer has signed Cert; nil: it has signed itself.
	Issuer *Pair
}

var serial atomic.Int64

// Authority makes one that signs itself.
func Authority(tb TB, name string) *Pair {
	tb.Helper()
	return sign(tb, nil, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	})
}

// Issue makes a certificate for localhost, 127.0.0.1 and ::1 that is good for servers and clients. change may
// be nil.
func (a *Pair) Issue(tb TB, name string, change func(*x509.Certificate)) *Pair {
	tb.Helper()
	t := &x509.Certificate{
		Subject:  pkix.Name{CommonName: name},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(t)
	}
	return sign(tb, a, t)
}

func sign(tb TB, issuer *Pair, t *x509.Certificate) *Pair {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	t.SerialNumber = big.NewInt(serial.Add(1))
	if t.NotBefore.IsZero() {
		t.NotBefore = time.Now().Add(-time.Hour)
	}
	if t.NotAfter.IsZero() {
		t.NotAfter = time.Now().Add(30 * 24 * time.Hour)
	}
	parent, signer := t, key
	if issuer != nil {
		parent, signer = issuer.Cert, issuer.Key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), signer)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return &Pair{Cert: cert, Key: key, Issuer: issuer}
}

// CertPEM is the certificate.
func (a *Pair) CertPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Cert.Raw})
}

// KeyPEM is the private key and the certificate.
func (a *Pair) KeyPEM(tb TB) []byte {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(a.Key)
	if err != nil {
		tb.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), a.CertPEM()...)
}

// Revoke makes a list of revoked certificates that is in force until then.
func (a *Pair) Revoke(tb TB, until time.Time, revoked ...*Pair) []byte {
	tb.Helper()
	t := &x509.RevocationList{
		Number: big.NewInt(serial.Add(1)), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: until,
	}
	for _, r := range revoked {
		t.RevokedCertificateEntries = append(t.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: r.Cert.SerialNumber, RevocationTime: t.ThisUpdate})
	}
	der, err := x509.CreateRevocationList(rand.Reader, t, a.Cert, a.Key)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

// Write puts these contents into a new file, and moves it to path, as programs do that exchange certificates.
func Write(tb TB, path string, contents ...[]byte) string {
	tb.Helper()
	if err := os.WriteFile(path+".new", bytes.Join(contents, nil), 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		tb.Fatal(err)
	}
	return path
}
