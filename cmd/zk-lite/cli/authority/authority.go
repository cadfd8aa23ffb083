// Package authority is a small certificate authority in a directory: its own key and certificate, and the files that
// servers and clients use. All files but ca.pem are for their owner's eyes only.
//
// The directory has ca.pem, which servers and clients trust: the authority's certificate first, then those of before it
// that are still trusted; ca-key.pem, its private key; and NAME.pem for each certificate, with its private key.
//
// It asks no server and starts no goroutine. The caller makes sure that no one else calls it at the same time.
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	caFile  = "ca.pem"
	keyFile = "ca-key.pem"
	// backdated lets clocks differ.
	backdated = 5 * time.Minute
)

// Authority is an authority in a directory.
type Authority struct {
	dir     string
	key     crypto.Signer
	trusted []*x509.Certificate // its own first
}

// Create makes a directory with a new authority.
func Create(dir, name string, life time.Duration) (*Authority, error) {
	if _, err := os.Stat(filepath.Join(dir, keyFile)); err == nil {
		return nil, fmt.Errorf("%s has an authority already; `zk-lite tls rotate` makes a new one beside it", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a := &Authority{dir: dir}
	return a, a.renew(name, life)
}

// Open reads the authority of a directory.
func Open(dir string) (*Authority, error) {
	a := &Authority{dir: dir}
	key, err := os.ReadFile(filepath.Join(dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no authority; `zk-lite tls init` makes one", dir)
	}
	if err != nil {
		return nil, err
	}
	if a.key, err = parseKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	if a.trusted, err = ReadCertificates(a.CAFile()); err != nil {
		return nil, err
	}
	own, ok := a.key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !own.Equal(a.trusted[0].PublicKey) {
		return nil, fmt.Errorf("%s: the first certificate of %s is not that of %s", dir, caFile, keyFile)
	}
	return a, nil
}

// CAFile is the path of the file that servers and clients trust.
func (a *Authority) CAFile() string { return filepath.Join(a.dir, caFile) }

// Trusted are the certificates in it, the authority's own first.
func (a *Authority) Trusted() []*x509.Certificate { return a.trusted }

// Rotate makes a new key and certificate for the authority. The old one stays trusted, until Finish.
func (a *Authority) Rotate(life time.Duration) error {
	return a.renew(a.trusted[0].Subject.CommonName, life)
}

// Finish ends the trust in authorities before this one, and returns how many they were. It refuses while a certificate
// of the directory is by one of them, and where there is none.
func (a *Authority) Finish() (n int, err error) {
	if n = len(a.trusted) - 1; n == 0 {
		return 0, fmt.Errorf("%s has no old authority: `zk-lite tls rotate` makes a new one", a.CAFile())
	}
	paths, err := a.issued()
	if err != nil {
		return 0, err
	}
	for _, path := range paths {
		all, err := ReadCertificates(path)
		if err != nil {
			return 0, err
		}
		if all[0].CheckSignatureFrom(a.trusted[0]) != nil {
			return 0, fmt.Errorf("%s is by an old authority, and would be refused everywhere: `zk-lite tls rotate "+
				"--issue` makes it anew; bring it to its place first", path)
		}
	}
	a.trusted = a.trusted[:1]
	return n, a.writeTrusted()
}

// issued are the paths of the certificates of the directory, but for the authority's.
func (a *Authority) issued() (paths []string, err error) {
	all, err := filepath.Glob(filepath.Join(a.dir, "*.pem"))
	for _, path := range all {
		if base := filepath.Base(path); base != caFile && base != keyFile {
			paths = append(paths, path)
		}
	}
	return paths, err
}

func (a *Authority) renew(name string, life time.Duration) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	cert, err := sign(t, t, key.Public(), key, life)
	if err != nil {
		return err
	}
	a.key, a.trusted = key, append([]*x509.Certificate{cert}, a.trusted...)
	// The certificates first: what they say of the key is checked by Open, and a second try repairs it.
	if err := a.writeTrusted(); err != nil {
		return err
	}
	text, err := encodeKey(key)
	if err != nil {
		return err
	}
	return write(filepath.Join(a.dir, keyFile), text, 0o600)
}

func (a *Authority) writeTrusted() error {
	var text []byte
	for _, cert := range a.trusted {
		text = append(text, encodeCert(cert)...)
	}
	return write(a.CAFile(), text, 0o644) // all trust it, and so may read it
}

// ErrExists says that there is a certificate of the name.
var ErrExists = errors.New("is there already")

// Issue makes NAME.pem, for these hosts; without any it is a client's. The URIs name what else it is for. Errors: also
// ErrExists, unless it may replace one, with its private key.
func (a *Authority) Issue(
	name string, hosts []string, life time.Duration, replace bool, uris ...*url.URL,
) (path string, err error) {
	if name == "" || strings.Trim(name, nameLetters) != "" || name == "ca" || name == "ca-key" || name[0] == '.' {
		return "", fmt.Errorf("%q is no name for a certificate; want letters, digits, dots and dashes", name)
	}
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, URIs: uris,
	}
	if len(hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
			continue
		}
		t.DNSNames = append(t.DNSNames, host)
	}
	path = filepath.Join(a.dir, name+".pem")
	if _, err := os.Lstat(path); err == nil && !replace {
		return path, fmt.Errorf("%s %w", path, ErrExists)
	}
	return path, a.issue(path, t, life)
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

// Reissue makes a new key and certificate for each one in the directory, of the same names and as long a life.
func (a *Authority) Reissue() (paths []string, err error) {
	all, err := a.issued()
	if err != nil {
		return nil, err
	}
	for _, path := range all {
		old, err := ReadCertificates(path)
		if err != nil {
			return paths, err
		}
		t := &x509.Certificate{
			Subject: old[0].Subject, KeyUsage: old[0].KeyUsage, ExtKeyUsage: old[0].ExtKeyUsage,
			DNSNames: old[0].DNSNames, IPAddresses: old[0].IPAddresses, URIs: old[0].URIs,
		}
		if err := a.issue(path, t, old[0].NotAfter.Sub(old[0].NotBefore)-backdated); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func (a *Authority) issue(path string, t *x509.Certificate, life time.Duration) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert, err := sign(t, a.trusted[0], key.Public(), a.key, life)
	if err != nil {
		return err
	}
	text, err := encodeKey(key)
	if err != nil {
		return err
	}
	return write(path, append(text, encodeCert(cert)...), 0o600)
}

func sign(
	t, parent *x509.Certificate, key crypto.PublicKey, signer crypto.Signer, life time.Duration,
) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	t.SerialNumber = serial
	t.NotBefore = time.Now().Add(-backdated)
	t.NotAfter = time.Now().Add(life)
	if t != parent && t.NotAfter.After(parent.NotAfter) {
		return nil, fmt.Errorf("the certificate would outlive its authority, which ends at %s; "+
			"`zk-lite tls rotate` makes a new one", parent.NotAfter.UTC().Format(time.RFC3339))
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// ReadCertificates reads those of a PEM file; one at least.
func ReadCertificates(path string) (all []*x509.Certificate, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: there is no certificate in PEM in it", path)
	}
	return all, nil
}

func parseKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("there is no private key in PEM in it")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

func encodeCert(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

// write puts a file in the place of another at once: servers that follow it never see half of it.
func write(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
