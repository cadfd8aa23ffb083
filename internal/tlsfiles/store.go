package tlsfiles

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"github.com/youmark/pkcs8"
	"software.sslmate.com/src/go-pkcs12"
)

// maxFileSize bounds a store: room for some thousand certificates.
const maxFileSize = 8 << 20

// The types of stores. Auto looks at the content.
const (
	Auto   = ""
	PEM    = "PEM"
	PKCS12 = "PKCS12"
	JKS    = "JKS"
)

// Store is a file with keys or certificates.
type Store struct {
	Location     string
	Password     string
	PasswordFile string // has the password in its first line, instead of Password
	Type         string // one of the types
}

// content is the content of a store.
type content struct {
	key     crypto.PrivateKey
	chain   []*x509.Certificate // of key, the leaf first
	trusted []*x509.Certificate
	crls    []*x509.RevocationList
}

// readKey reads a store with a private key.
func (s *Store) readKey() (tls.Certificate, error) {
	c, err := s.read()
	if err != nil {
		return tls.Certificate{}, err
	}
	switch {
	case c.key == nil:
		return tls.Certificate{}, s.errorf("it has no private key")
	case len(c.chain) == 0:
		return tls.Certificate{}, s.errorf("it has no certificate beside the private key")
	}
	pair := tls.Certificate{PrivateKey: c.key}
	for _, cert := range c.chain {
		pair.Certificate = append(pair.Certificate, cert.Raw)
	}
	leaf, key := c.chain[0], c.key.(crypto.Signer).Public()
	if own, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !own.Equal(key) {
		return tls.Certificate{}, s.errorf("its first certificate, of %s, is not that of its private key", leaf.Subject)
	}
	pair.Leaf = leaf
	return pair, nil
}

// readTrusted reads a store with certificates of authorities, and their revocation lists.
func (s *Store) readTrusted() ([]*x509.Certificate, []*x509.RevocationList, error) {
	c, err := s.read()
	if err != nil {
		return nil, nil, err
	}
	if len(c.trusted) == 0 {
		return nil, nil, s.errorf("it has no certificate of an authority (in PKCS12 and JKS: none marked as " +
			"trusted, which keytool -importcert does)")
	}
	return c.trusted, c.crls, nil
}

func (s *Store) read() (*content, error) {
	text, err := readFile(s.Location)
	if err != nil {
		return nil, err
	}
	password, err := s.password()
	if err != nil {
		return nil, err
	}
	var c *content
	switch kind := s.kind(text); kind {
	case PEM:
		c, err = parsePEM(text, password)
	case PKCS12:
		c, err = parsePKCS12(text, password)
	case JKS:
		c, err = parseJKS(text, password)
	default:
		return nil, s.errorf("type %s is not read; convert it: keytool -importkeystore -deststoretype PKCS12", kind)
	}
	if err != nil {
		return nil, s.errorf("%w", err)
	}
	if _, ok := c.key.(crypto.Signer); c.key != nil && !ok {
		return nil, s.errorf("its private key, a %T, cannot sign", c.key)
	}
	return c, nil
}

func (s *Store) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", s.Location, fmt.Errorf(format, args...))
}

// kind is the type of the store: as named, or by its content.
func (s *Store) kind(text []byte) string {
	switch {
	case s.Type != Auto:
		return strings.ToUpper(s.Type)
	case bytes.HasPrefix(text, []byte{0xfe, 0xed, 0xfe, 0xed}):
		return JKS
	case bytes.HasPrefix(text, []byte{0xce, 0xce, 0xce, 0xce}):
		return "JCEKS"
	case bytes.HasPrefix(text, []byte{0x30}):
		return PKCS12
	}
	return PEM
}

func (s *Store) password() (string, error) {
	if s.PasswordFile == "" {
		return s.Password, nil
	}
	return ReadSecret(s.PasswordFile)
}

// ReadSecret reads the first line of a file.
func ReadSecret(path string) (string, error) {
	text, err := readFile(path)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err == nil && len(text) > maxFileSize {
		err = fmt.Errorf("%s: it is larger than %d bytes", path, maxFileSize)
	}
	return text, err
}

// parsePEM reads blocks in any order; the certificates of a key must be leaf first.
func parsePEM(text []byte, password string) (*content, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors begin a file with it
	c := &content{}
	read := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		read++
		var err error
		switch block.Type {
		case "CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE":
			var cert *x509.Certificate
			cert, err = x509.ParseCertificate(block.Bytes)
			c.chain = append(c.chain, cert)
		case "X509 CRL":
			var crl *x509.RevocationList
			crl, err = x509.ParseRevocationList(block.Bytes)
			c.crls = append(c.crls, crl)
		default:
			if strings.HasSuffix(block.Type, "PRIVATE KEY") {
				c.key, err = parsePEMKey(block, password)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("the block %s: %w", block.Type, err)
		}
	}
	if err := allRead(text, read); err != nil {
		return nil, err
	}
	if c.key == nil && len(c.chain) == 0 && len(c.crls) == 0 {
		return nil, errors.New("it has no PEM block with a certificate, a key or a CRL")
	}
	c.trusted = c.chain
	return c, nil
}

// allRead reports blocks that pem.Decode has passed over: without its authority a client is refused, and without a
// list of revoked certificates those that it revokes are admitted.
func allRead(text []byte, read int) error {
	begun := 0
	for number, line := range bytes.Split(text, []byte("\n")) {
		n := bytes.Count(line, []byte("-----BEGIN "))
		if begun += n; n > 0 && !bytes.HasPrefix(line, []byte("-----BEGIN ")) {
			return fmt.Errorf("line %d: a block has to begin on a line of its own; put a line end before -----BEGIN",
				number+1)
		}
	}
	if begun != read {
		return fmt.Errorf("%d blocks begin in it, of which %d can be read: one is damaged or cut off", begun, read)
	}
	return nil
}

func parsePEMKey(block *pem.Block, password string) (crypto.PrivateKey, error) {
	if block.Headers["DEK-Info"] != "" {
		return nil, errors.New("this old encryption is not safe; convert the key with `openssl pkcs8 -topk8`")
	}
	switch block.Type {
	case "ENCRYPTED PRIVATE KEY":
		if password == "" {
			return nil, errors.New("it is encrypted, and no password is given")
		}
		key, err := pkcs8.ParsePKCS8PrivateKey(block.Bytes, []byte(password))
		if err != nil {
			return nil, fmt.Errorf("the password is wrong, or the key damaged: %w", err)
		}
		return key, nil
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	}
	return x509.ParsePKCS8PrivateKey(block.Bytes)
}

// parsePKCS12 reads a store with a key, or else one with trusted certificates.
func parsePKCS12(text []byte, password string) (*content, error) {
	key, leaf, more, err := pkcs12.DecodeChain(text, password)
	if err == nil {
		return &content{key: key, chain: append([]*x509.Certificate{leaf}, more...)}, nil
	}
	trusted, trustErr := pkcs12.DecodeTrustStore(text, password)
	if trustErr != nil {
		return nil, fmt.Errorf("as a store with a key: %w; as one with certificates: %w", err, trustErr)
	}
	return &content{trusted: trusted}, nil
}

// parseJKS reads Java's own format.
func parseJKS(text []byte, password string) (*content, error) {
	if !intactJKS(text, password) {
		return nil, errors.New("the password is wrong, or the file damaged")
	}
	store := keystore.New()
	if err := store.Load(bytes.NewReader(text), []byte(password)); err != nil {
		return nil, err
	}
	c := &content{}
	for _, alias := range store.Aliases() {
		switch {
		case store.IsTrustedCertificateEntry(alias):
			entry, err := store.GetTrustedCertificateEntry(alias)
			if err != nil {
				return nil, fmt.Errorf("the entry %s: %w", alias, err)
			}
			cert, err := x509.ParseCertificate(entry.Certificate.Content)
			if err != nil {
				return nil, fmt.Errorf("the entry %s: %w", alias, err)
			}
			c.trusted = append(c.trusted, cert)
		case c.key == nil:
			if err := c.takeJKSKey(store, alias, password); err != nil {
				return nil, fmt.Errorf("the entry %s: %w", alias, err)
			}
		default:
			return nil, errors.New("it has more than one private key; a server has one")
		}
	}
	return c, nil
}

// intactJKS checks the digest at the end. The library allocates what a file claims before it does so, and a
// half-written file must not end the process.
func intactJKS(text []byte, password string) bool {
	if len(text) < sha1.Size {
		return false
	}
	body, digest := text[:len(text)-sha1.Size], text[len(text)-sha1.Size:]
	h := sha1.New()
	for _, unit := range utf16.Encode([]rune(password)) {
		h.Write([]byte{byte(unit >> 8), byte(unit)})
	}
	h.Write([]byte("Mighty Aphrodite")) // Java's salt
	h.Write(body)
	return hmac.Equal(h.Sum(nil), digest)
}

func (c *content) takeJKSKey(store keystore.KeyStore, alias, password string) error {
	entry, err := store.GetPrivateKeyEntry(alias, []byte(password))
	if err != nil {
		return err
	}
	if c.key, err = x509.ParsePKCS8PrivateKey(entry.PrivateKey); err != nil {
		return err
	}
	for _, x := range entry.CertificateChain {
		cert, err := x509.ParseCertificate(x.Content)
		if err != nil {
			return err
		}
		c.chain = append(c.chain, cert)
	}
	return nil
}
