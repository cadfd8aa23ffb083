// Package digestmd5 is the SASL mechanism DIGEST-MD5 (RFC 2831), as a server (Exchange) and as a client (Client):
// authentication only, without layers of integrity or confidentiality and without subsequent authentication (see RFC
// 6331 for the weaknesses of the mechanism).
//
// It knows no users and no connections, and starts no goroutine.
package digestmd5

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxResponse bounds a client's response in bytes (RFC 2831, 2.1.2).
const maxResponse = 4096

// Config is shared by all exchanges of a server.
type Config struct {
	Service, Host string // the digest-uri is Service/Host
	Realm         string
	// Password is that of a user; ok is false where there is no such user.
	Password func(user string) (password string, ok bool)
}

// Exchange is one client's authentication. It is used once, by one goroutine at a time.
type Exchange struct {
	cfg   *Config
	nonce string
	step  int
}

// New begins an exchange.
func New(cfg *Config) *Exchange { return &Exchange{cfg: cfg, nonce: rand.Text()} }

// Next takes the client's next token and returns the server's. user is empty until the client has proved its
// identity. After an error, and after the last token, the exchange is of no further use.
func (e *Exchange) Next(token []byte) (reply []byte, user string, err error) {
	e.step++
	switch {
	case e.step == 1 && len(token) > 0:
		e.step++
		return nil, "", fmt.Errorf("a first token of %d bytes, and DIGEST-MD5 has none: the client may want another "+
			"mechanism (GSSAPI)", len(token))
	case e.step == 1:
		return fmt.Appendf(nil, `realm=%s,nonce=%s,qop="auth",charset=utf-8,algorithm=md5-sess`,
			quote(e.cfg.Realm), quote(e.nonce)), "", nil
	case e.step == 2:
		return e.check(token)
	}
	return nil, "", errors.New("the exchange has ended")
}

// errWrong does not distinguish an unknown user from a wrong password.
var errWrong = errors.New("user or password is wrong")

// check looks at the digest-response (2.1.2) and answers it (2.1.3).
func (e *Exchange) check(token []byte) (reply []byte, user string, err error) {
	if len(token) > maxResponse {
		return nil, "", fmt.Errorf("a response of %d bytes; %d are allowed", len(token), maxResponse)
	}
	d, err := parse(string(token))
	if err != nil {
		return nil, "", err
	}
	if err := e.agree(d); err != nil {
		return nil, "", err
	}
	user, err = d.text("username")
	if err != nil {
		return nil, "", err
	}
	password, known := e.cfg.Password(user)
	if !known {
		password = rand.Text() // takes as long
	}
	a1 := d.a1(user, password)
	want := d.digest(a1, "AUTHENTICATE:")
	if subtle.ConstantTimeCompare([]byte(want), []byte(d["response"])) != 1 || !known {
		return nil, "", errWrong
	}
	return []byte("rspauth=" + d.digest(a1, ":")), user, nil
}

// agree checks everything but the proof.
func (e *Exchange) agree(d directives) error {
	for _, x := range []struct{ name, want, absent string }{
		{"realm", e.cfg.Realm, ""}, {"nonce", e.nonce, ""}, {"nc", "00000001", ""}, {"qop", "auth", "auth"},
		{"charset", "utf-8", "utf-8"}, {"algorithm", "md5-sess", "md5-sess"},
	} {
		got, there := d[x.name]
		if !there {
			got = x.absent
		}
		if got != x.want {
			return fmt.Errorf("%s is %.64q, and not %q", x.name, got, x.want)
		}
	}
	if uri := e.cfg.Service + "/" + e.cfg.Host; !strings.EqualFold(d["digest-uri"], uri) {
		return fmt.Errorf("digest-uri is %.64q, and not %q", d["digest-uri"], uri)
	}
	if d["cnonce"] == "" || d["username"] == "" {
		return errors.New("the response has no cnonce or no username")
	}
	return nil
}

// Client is the side that proves its identity. It is used once, by one goroutine at a time.
type Client struct {
	Service, Host  string // of the server; its digest-uri is Service/Host
	User, Password string

	proof string // that the server must send
}

// Respond returns the response to a server's challenge (RFC 2831, 2.1.2).
func (c *Client) Respond(challenge []byte) ([]byte, error) {
	if len(challenge) > maxResponse {
		return nil, fmt.Errorf("a challenge of %d bytes; %d are allowed", len(challenge), maxResponse)
	}
	d, err := parse(string(challenge))
	switch {
	case err != nil:
		return nil, err
	case d["nonce"] == "":
		return nil, errors.New("the challenge has no nonce: the server may want another mechanism (GSSAPI)")
	case d["algorithm"] != "md5-sess":
		return nil, fmt.Errorf("algorithm is %.64q, and not %q", d["algorithm"], "md5-sess")
	case !hasAuth(d):
		return nil, fmt.Errorf("qop is %.64q, without %q", d["qop"], "auth")
	}
	r := directives{
		"username": c.User, "nonce": d["nonce"], "nc": "00000001", "cnonce": rand.Text(),
		"digest-uri": c.Service + "/" + c.Host, "realm": d["realm"],
	}
	a1 := r.a1(c.User, c.Password)
	c.proof = "rspauth=" + r.digest(a1, ":")
	b := fmt.Appendf(nil, `username=%s,realm=%s,nonce=%s,nc=%s,cnonce=%s,digest-uri=%s,response=%s,qop=auth`,
		quote(c.User), quote(r["realm"]), quote(r["nonce"]), r["nc"], quote(r["cnonce"]), quote(r["digest-uri"]),
		r.digest(a1, "AUTHENTICATE:"))
	if d["charset"] != "" {
		b = append(b, ",charset=utf-8"...)
	}
	return b, nil
}

func hasAuth(d directives) bool {
	qop, there := d["qop"]
	for choice := range strings.SplitSeq(qop, ",") {
		if strings.TrimSpace(choice) == "auth" {
			return true
		}
	}
	return !there
}

// Check returns why the server's last token does not prove that it knows the password (2.1.3).
func (c *Client) Check(token []byte) error {
	if c.proof == "" || subtle.ConstantTimeCompare(token, []byte(c.proof)) != 1 {
		return errors.New("the server does not prove that it knows the password")
	}
	return nil
}

// directives are those of a response, by name in lower case.
type directives map[string]string

// parse reads name=value, separated by commas, where value may be quoted (RFC 2831, 7.2).
func parse(text string) (directives, error) {
	d := directives{}
	for {
		text = strings.TrimLeft(text, ", \t\r\n")
		if text == "" {
			return d, nil
		}
		name, rest, ok := strings.Cut(text, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if !ok || name == "" || strings.ContainsAny(name, "\",") {
			return nil, errors.New("the response is not a list of name=value")
		}
		if _, twice := d[name]; twice {
			return nil, fmt.Errorf("the response has %.64q twice", name)
		}
		if d[name], text, ok = value(strings.TrimLeft(rest, " \t\r\n")); !ok {
			return nil, fmt.Errorf("the value of %.64q does not end as it should", name)
		}
	}
}

// value cuts a value off.
func value(text string) (v, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexByte(text, ',')
		if end < 0 {
			end = len(text)
		}
		return strings.TrimSpace(text[:end]), text[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '"':
			rest = strings.TrimLeft(text[i+1:], " \t\r\n")
			return b.String(), rest, rest == "" || rest[0] == ','
		case text[i] == '\\' && i+1 < len(text):
			i++
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}

func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// text is a directive as UTF-8: without charset it is ISO 8859-1.
func (d directives) text(name string) (string, error) {
	if _, isUTF8 := d["charset"]; !isUTF8 {
		runes := make([]rune, 0, len(d[name]))
		for _, b := range []byte(d[name]) {
			runes = append(runes, rune(b))
		}
		return string(runes), nil
	}
	if !utf8.ValidString(d[name]) {
		return "", fmt.Errorf("%s is not UTF-8, as charset says", name)
	}
	return d[name], nil
}

// latin1 is text in ISO 8859-1 if it can be written so, as it is hashed (2.1.2.1).
func latin1(text string) string {
	b := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			return text
		}
		b = append(b, byte(r))
	}
	return string(b)
}

func (d directives) a1(user, password string) string {
	secret := md5.Sum([]byte(latin1(user) + ":" + d["realm"] + ":" + latin1(password)))
	a1 := string(secret[:]) + ":" + d["nonce"] + ":" + d["cnonce"]
	if id, there := d["authzid"]; there {
		a1 += ":" + id
	}
	return a1
}

// digest is the response-value of 2.1.2.1, or that of 2.1.3 with another beginning of A2.
func (d directives) digest(a1, a2 string) string {
	return hash(strings.Join([]string{hash(a1), d["nonce"], d["nc"], d["cnonce"], "auth", hash(a2 + d["digest-uri"])},
		":"))
}

func hash(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
