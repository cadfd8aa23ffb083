// Package auth determines who a client is: which identities its credentials prove, which of them a server requires, and
// who is an administrator. ACLs decide what an identity may do with a znode (znode); TLS certificates have been
// verified before (internal/tlsfiles).
//
// It keeps no connection and starts no goroutine. A file that has changed is read again by the next caller that needs
// it (internal/follow).
package auth

import (
	"crypto"
	_ "crypto/sha1" // the digests of users
	_ "crypto/sha256"
	_ "crypto/sha3"
	_ "crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zk-lite/zk-lite/znode"
)

// Config configures an Authenticator. The zero value is ZooKeeper's default.
type Config struct {
	SuperDigest string      // of the super user, USER:HASH; empty: there is none
	SuperName   string      // the super user's id of scheme x509; empty: there is none
	SAN         *SAN        // whence ids of scheme x509 are; nil: the subjects of certificates
	Digest      crypto.Hash // of passwords; 0: SHA-1. All servers need the same.
	NoDigest    bool        // the scheme digest proves nothing
	// Schemes are those of which a client needs an identity; none: it needs none.
	Schemes []string
	// Ensemble enables the scheme ensemble. Ensembles are the names that clients may expect there; none:
	// any.
	Ensemble  bool
	Ensembles []string
	// SkipACL lets every client do everything with znodes. It makes no one an administrator.
	SkipACL bool
	// Administrators are identities that may run the ensemble, besides super users.
	Administrators []znode.ID
	SASL           *SASL   // nil: there is none
	Tokens         *Tokens // nil: there are none
	Local          *Local  // nil: being on this machine makes no one an administrator
}

// Authenticator maps credentials to identities.
type Authenticator struct{ cfg Config }

// New returns an Authenticator.
func New(cfg Config) *Authenticator {
	if cfg.Digest == 0 {
		cfg.Digest = crypto.SHA1
	}
	return &Authenticator{cfg}
}

// unchecked is the super user that skipACL makes of every client; it is no administrator.
var unchecked = znode.ID{Scheme: "super", ID: "skipACL"}

// First returns the identities of every client of this server.
func (a *Authenticator) First(address string) []znode.ID {
	ids := []znode.ID{{Scheme: "ip", ID: address}}
	if a.cfg.SkipACL {
		ids = append(ids, unchecked)
	}
	return ids
}

// Password returns the identities that "user:password" proves: the digest, and the super user's if it is that. ok
// is false where the scheme digest proves nothing.
func (a *Authenticator) Password(credentials string) (ids []znode.ID, ok bool) {
	if a.cfg.NoDigest {
		return nil, false
	}
	id := Digest(a.cfg.Digest, credentials)
	ids = []znode.ID{{Scheme: "digest", ID: id}}
	if a.cfg.SuperDigest != "" && subtle.ConstantTimeCompare([]byte(id), []byte(a.cfg.SuperDigest)) == 1 {
		ids = append(ids, znode.SuperIDs)
	}
	return ids, true
}

// Digest is the id of scheme digest for "user:password".
func Digest(h crypto.Hash, credentials string) string {
	user, _, _ := strings.Cut(credentials, ":")
	w := h.New()
	w.Write([]byte(credentials))
	return user + ":" + base64.StdEncoding.EncodeToString(w.Sum(nil))
}

// Certificate returns the identities of a client with this certificate, which has been checked.
func (a *Authenticator) Certificate(cert *x509.Certificate) []znode.ID {
	id, ok := a.certificateID(cert)
	if !ok {
		return nil
	}
	ids := []znode.ID{{Scheme: "x509", ID: id}}
	if a.cfg.SuperName != "" && id == a.cfg.SuperName {
		ids = append(ids, znode.ID{Scheme: "super", ID: id})
	}
	return ids
}

// Token returns the identity of a bearer token.
func (a *Authenticator) Token(token string) (ids []znode.ID, ok bool) {
	if a.cfg.Tokens == nil {
		return nil, false
	}
	name, ok := a.cfg.Tokens.find(token)
	return []znode.ID{{Scheme: "token", ID: name}}, ok
}

// Ensemble reports whether the ensemble has this name and the scheme is enabled. An empty name always matches.
func (a *Authenticator) Ensemble(name string) (ok bool) {
	return a.cfg.Ensemble && (name == "" || len(a.cfg.Ensembles) == 0 || slices.Contains(a.cfg.Ensembles, name))
}

// Enough reports whether a client with these identities may send requests.
func (a *Authenticator) Enough(ids []znode.ID) bool {
	return len(a.cfg.Schemes) == 0 || slices.ContainsFunc(ids, func(id znode.ID) bool {
		return slices.Contains(a.cfg.Schemes, id.Scheme)
	})
}

// Schemes are those of which a client needs an identity.
func (a *Authenticator) Schemes() []string { return a.cfg.Schemes }

// Administrator reports whether one of the identities may run the ensemble.
func (a *Authenticator) Administrator(ids []znode.ID) bool {
	return slices.ContainsFunc(ids, func(id znode.ID) bool {
		return id.Scheme == "super" && id != unchecked || slices.Contains(a.cfg.Administrators, id)
	})
}

// Unrestricted returns the setting by which ACLs do not bind a client with one of these identities; empty: they do. Of
// a digest it compares the user's name alone, so that no one can try hashes of the super user's password.
func (a *Authenticator) Unrestricted(ids []znode.ID) (setting string) {
	if a.cfg.SkipACL {
		return "skipACL"
	}
	super := znode.WithoutHash(znode.ID{Scheme: "digest", ID: a.cfg.SuperDigest})
	for _, id := range ids {
		switch {
		case id.Scheme == "super":
			return "super user"
		case id.Scheme == "digest" && a.cfg.SuperDigest != "" && znode.WithoutHash(id) == super:
			return "DigestAuthenticationProvider.superDigest"
		case id.Scheme == "x509" && a.cfg.SuperName != "" && id.ID == a.cfg.SuperName:
			return "X509AuthenticationProvider.superUser"
		case id.Scheme == "sasl" && a.cfg.SASL != nil && slices.Contains(a.cfg.SASL.Supers, id.ID):
			return "superUser"
		}
	}
	return ""
}

// Configured reports whether the configuration names an administrator.
func (a *Authenticator) Configured() bool {
	return a.cfg.SuperDigest != "" || a.cfg.SuperName != "" || len(a.cfg.Administrators) > 0 ||
		a.cfg.SASL != nil && len(a.cfg.SASL.Supers) > 0
}

// Local is what makes a client on this machine an administrator; nil: nothing.
func (a *Authenticator) Local() *Local { return a.cfg.Local }

// Exchange is one client's run of a SASL mechanism (RFC 4422), on the server's side.
type Exchange interface {
	// Next takes the client's token and returns the server's. user is empty until the client has proved who it is.
	Next(token []byte) (reply []byte, user string, err error)
}

// SASL configures SASL on the ZooKeeper port.
type SASL struct {
	// Mechanism is DIGEST-MD5 or GSSAPI.
	Mechanism func() string
	// Begin starts an exchange.
	Begin func() Exchange
	// Realm is the Kerberos realm of the server, whose names the settings below shorten; empty: there is none.
	Realm func() string
	// RemoveHost and RemoveRealm make service/host@REALM shorter (kerberos.removeHostFromPrincipal and
	// kerberos.removeRealmFromPrincipal).
	RemoveHost, RemoveRealm bool
	// Supers are the names of super users, after that.
	Supers []string
	// AllowFailed keeps clients that fail, without an identity (allowSaslFailedClients).
	AllowFailed bool
}

// SASL returns the configuration of SASL; nil: there is none.
func (a *Authenticator) SASL() *SASL { return a.cfg.SASL }

// Identities returns those of a user who has authenticated (SaslServerCallbackHandler). The identity is that of
// the credentials: a client cannot choose another one.
func (s *SASL) Identities(user string) ([]znode.ID, error) {
	name, err := s.shorten(user)
	if err != nil {
		return nil, err
	}
	ids := []znode.ID{{Scheme: "sasl", ID: name}}
	if slices.Contains(s.Supers, name) {
		ids = append(ids, znode.SuperIDs)
	}
	return ids, nil
}

// shorten removes host and realm from service/host@REALM as configured. Names of other realms stay whole, so that no
// user there can be mistaken for one here.
func (s *SASL) shorten(user string) (string, error) {
	id := znode.ID{Scheme: "sasl", ID: user}
	if user == "" || !znode.ValidID(id) {
		return "", fmt.Errorf("%.100q is not of the form user, service/host@REALM or user@REALM", user)
	}
	rest, realm, there := strings.Cut(user, "@")
	if !there || realm != s.Realm() {
		return user, nil
	}
	service, host, hasHost := strings.Cut(rest, "/")
	if hasHost && !s.RemoveHost {
		service += "/" + host
	}
	if !s.RemoveRealm {
		service += "@" + realm
	}
	if service == "" {
		return "", errors.New("the name is empty without host and realm")
	}
	return service, nil
}

// attribute is one part of a distinguished name.
type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// attributeSET is a relative distinguished name; package asn1 goes by the end of its name.
type attributeSET []attribute

// keywords are those of RFC 2253, section 2.3; others are written as numbers.
var keywords = map[string]string{
	"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET",
	"2.5.4.10": "O", "2.5.4.11": "OU",
	"0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC",
}

// Subject is a certificate's distinguished name as ZooKeeper writes it in ACLs: RFC 2253, with what Java's
// X500Principal.getName makes of it.
func Subject(cert *x509.Certificate) string { return name(cert.RawSubject) }

func name(der []byte) string {
	var sets []attributeSET
	if rest, err := asn1.Unmarshal(der, &sets); err != nil || len(rest) > 0 {
		return "" // package x509 has read it already
	}
	var parts []string
	for _, set := range slices.Backward(sets) {
		var values []string
		for _, a := range set {
			values = append(values, a.String())
		}
		parts = append(parts, strings.Join(values, "+"))
	}
	return strings.Join(parts, ",")
}

// textTags are the types of strings that Java writes as text, all of them as if they were UTF-8.
var textTags = []int{asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagT61String, asn1.TagIA5String,
	asn1.TagGeneralString, asn1.TagBMPString}

func (a attribute) String() string {
	keyword := keywords[a.Type.String()]
	text := a.Value.Class == asn1.ClassUniversal && slices.Contains(textTags, a.Value.Tag)
	switch {
	case keyword == "":
		return a.Type.String() + "=#" + hex.EncodeToString(a.Value.FullBytes)
	case !text:
		return keyword + "=#" + hex.EncodeToString(a.Value.FullBytes)
	}
	return keyword + "=" + escape(string(a.Value.Bytes))
}

func escape(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, string(utf8.RuneError))
	}
	const blanks = " \r"
	lead := len(text) - len(strings.TrimLeft(text, blanks))
	trail := len(strings.TrimRight(text, blanks))
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == 0:
			b.WriteString(`\00`)
			continue
		case strings.ContainsRune(`,=+<>#;"\`, r), i < lead, i >= trail:
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
