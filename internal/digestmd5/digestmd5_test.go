package digestmd5

import (
	"strings"
	"testing"
)

// The example of RFC 2831, section 4.
const (
	exampleResponse = `charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",nc=00000001,` +
		`cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",` +
		`response=d388dad90d4bbd760a152321f2143af7,qop=auth`
	exampleAnswer = "rspauth=ea40f60335c427b5527b84dbabcdfffd"
)

// example is an exchange in which it is the client's turn to respond.
func example(users map[string]string) *Exchange {
	return &Exchange{step: 1, nonce: "OA6MG9tEQGm2hh", cfg: &Config{
		Service: "imap", Host: "elwood.innosoft.com", Realm: "elwood.innosoft.com",
		Password: func(user string) (string, bool) { p, ok := users[user]; return p, ok },
	}}
}

func TestNext_ExampleOfTheRFC(t *testing.T) {
	e := example(map[string]string{"chris": "secret"})
	reply, user, err := e.Next([]byte(exampleResponse))
	if string(reply) != exampleAnswer || user != "chris" || err != nil {
		t.Errorf("reply %s, user %q (%v); want those of the RFC: %s, chris", reply, user, err, exampleAnswer)
	}
	if _, user, err := e.Next([]byte(exampleResponse)); user != "" || err == nil {
		t.Error("the same response was taken again")
	}
}

func TestNext_IsRefused(t *testing.T) {
	replace := func(old, by string) string {
		text := strings.Replace(exampleResponse, old, by, 1)
		if text == exampleResponse {
			t.Fatalf("%q is not there", old)
		}
		return text
	}
	for name, x := range map[string]struct{ response, says string }{
		"another user":          {replace("chris", "eve"), "user or password is wrong"},
		"another proof":         {replace("=d388", "=d389"), "user or password is wrong"},
		"upper case":            {replace("=d388dad90d", "=D388DAD90D"), "user or password is wrong"},
		"no proof":              {replace("response=", "x="), "user or password is wrong"},
		"another realm":         {replace(`realm="elwood`, `realm="other`), "realm is"},
		"no realm":              {replace(`realm=`, `x=`), "realm is"},
		"a nonce of before":     {replace("OA6MG9tEQGm2hh", "OA6MG9tEQGm2hi"), "nonce is"},
		"a later use":           {replace("00000001", "00000002"), "nc is"},
		"a layer":               {replace("qop=auth", "qop=auth-int"), "qop is"},
		"a weaker algorithm":    {exampleResponse + ",algorithm=md5", "algorithm is"},
		"another charset":       {replace("utf-8", "utf-7"), "charset is"},
		"another service":       {replace("imap/", "pop/"), "digest-uri is"},
		"no cnonce":             {replace("cnonce=", "x="), "no cnonce"},
		"a directive twice":     {exampleResponse + `,Username="chris"`, "twice"},
		"no end of a quotation": {`username="chris`, "does not end"},
		"text behind it":        {replace(`"chris"`, `"chris"x`), "does not end"},
		"something else":        {"hello", "name=value"},
		"cut off":               {exampleResponse[:len(exampleResponse)-20], "user or password is wrong"},
		"an authzid":            {exampleResponse + ",authzid=root", "user or password is wrong"},
		"too much":              {exampleResponse + strings.Repeat(" ", maxResponse), "are allowed"},
		"invalid UTF-8":         {replace("chris", "chris\xff"), "not UTF-8"},
		"nothing":               {"", "realm is"},
	} {
		e := example(map[string]string{"chris": "secret"})
		reply, user, err := e.Next([]byte(x.response))
		if reply != nil || user != "" || err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: reply %s, user %q, error %v; want an error with %q alone", name, reply, user, err, x.says)
		}
		if _, user, err := e.Next([]byte(exampleResponse)); user != "" || err == nil {
			t.Errorf("%s: there was a second try", name)
		}
	}
	if _, user, err := example(map[string]string{"chris": "Secret"}).Next([]byte(exampleResponse)); user != "" || err == nil {
		t.Error("another password was taken")
	}
}

func TestNext_FirstToken(t *testing.T) {
	cfg := &Config{Service: "s", Host: "h", Realm: `a"b\c`, Password: func(string) (string, bool) { return "", false }}
	e := New(cfg)
	challenge, user, err := e.Next(nil)
	d, bad := parse(string(challenge))
	if err != nil || user != "" || bad != nil || d["realm"] != cfg.Realm || d["nonce"] != e.nonce || len(e.nonce) < 20 {
		t.Errorf("challenge %s, user %q (%v, %v); want realm %s and the nonce", challenge, user, err, bad, cfg.Realm)
	}
	if New(cfg).nonce == e.nonce {
		t.Error("two exchanges have one nonce")
	}
	e = New(cfg)
	if _, _, err := e.Next([]byte{0x60}); err == nil || !strings.Contains(err.Error(), "GSSAPI") {
		t.Errorf("another mechanism: %v", err)
	}
	if reply, _, err := e.Next(nil); err == nil {
		t.Errorf("then it goes on: %s", reply)
	}
}

// Names are hashed in ISO 8859-1 where that can be, whatever they are sent in.
func TestNext_Charset(t *testing.T) {
	for _, x := range []struct{ charset, sent, hashed, user string }{
		{"utf-8", "jürgen", "j\xfcrgen", "jürgen"}, {"", "j\xfcrgen", "j\xfcrgen", "jürgen"},
		{"utf-8", "ж", "ж", "ж"},
	} {
		d := directives{
			"realm": "elwood.innosoft.com", "nonce": "OA6MG9tEQGm2hh", "nc": "00000001", "cnonce": "c",
			"digest-uri": "IMAP/elwood.innosoft.com",
		}
		secret := directives{"realm": d["realm"], "nonce": d["nonce"], "cnonce": d["cnonce"]}
		d["response"] = d.digest(secret.a1(decoded(x.hashed), "secret"), "AUTHENTICATE:")
		d["username"] = x.sent
		if x.charset != "" {
			d["charset"] = x.charset
		}
		var text []string
		for name, v := range d {
			text = append(text, name+" = "+quote(v))
		}
		reply, user, err := example(map[string]string{x.user: "secret"}).Next([]byte(strings.Join(text, " , ")))
		if user != x.user || err != nil || !strings.HasPrefix(string(reply), "rspauth=") {
			t.Errorf("%q: reply %s, user %q (%v); want rspauth= and %q", x.sent, reply, user, err, x.user)
		}
	}
}

// decoded is a text whose hashed form is b.
func decoded(b string) string {
	if strings.Contains(b, "ж") {
		return b
	}
	text, _ := directives{"x": b}.text("x")
	return text
}

func FuzzNext(f *testing.F) {
	f.Add([]byte(exampleResponse))
	f.Add([]byte(`a="\"",b=`))
	f.Fuzz(func(t *testing.T, token []byte) {
		_, user, err := example(map[string]string{"chris": "secret"}).Next(token)
		if user != "" && (err != nil || user != "chris") {
			t.Errorf("%q: user %q (%v), want chris or none", token, user, err)
		}
	})
}

// A client and a server prove to each other that they know the password, whatever is in it and in the names.
func TestClient(t *testing.T) {
	for _, test := range []struct {
		user, password, realm, servers string
		want                           bool
	}{
		{"chris", "secret", "elwood.innosoft.com", "secret", true},
		{"chris", "secret", "elwood.innosoft.com", "other", false},
		{`"a\b", c`, `quo"te\`, `re"alm`, `quo"te\`, true},
		{"jürgen", "pässword", "r", "pässword", true},
		{"ユーザー", "秘密", "", "秘密", true},
	} {
		e := New(&Config{Service: "s", Host: "h", Realm: test.realm,
			Password: func(user string) (string, bool) { return test.servers, user == test.user }})
		c := &Client{Service: "s", Host: "h", User: test.user, Password: test.password}
		challenge, _, err := e.Next(nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.Respond(challenge)
		if err != nil {
			t.Fatalf("Respond(%s) = %v, want a response", challenge, err)
		}
		proof, user, err := e.Next(response)
		if got := err == nil && user == test.user && c.Check(proof) == nil; got != test.want {
			t.Errorf("user %q, password %q, and %q at the server: agreed: %v (%v), want %v", test.user, test.password,
				test.servers, got, err, test.want)
		}
		if c.Check([]byte("rspauth=0123456789abcdef0123456789abcdef")) == nil || c.Check(nil) == nil {
			t.Errorf("user %q: another proof was taken", test.user)
		}
	}
}

// A client refuses what it cannot answer.
func TestClient_Refuses(t *testing.T) {
	c := &Client{Service: "s", Host: "h", User: "u", Password: "p"}
	if c.Check(nil) == nil || c.Check([]byte("")) == nil {
		t.Error("an empty proof was taken before there was a challenge")
	}
	for _, challenge := range []string{
		"", "nonsense", `realm="r",algorithm=md5-sess`, `nonce="n"`, `nonce="n",algorithm=md5`,
		`nonce="n",algorithm=md5-sess,qop="auth-int,auth-conf"`, `nonce="n",nonce="m",algorithm=md5-sess`,
		`nonce="n",algorithm=md5-sess,x="` + strings.Repeat("x", maxResponse) + `"`,
	} {
		if response, err := c.Respond([]byte(challenge)); err == nil {
			t.Errorf("Respond(%.80s) = %s, want an error", challenge, response)
		}
	}
}

// FuzzRespond: whatever a server sends is answered or refused.
func FuzzRespond(f *testing.F) {
	f.Add([]byte(`realm="r",nonce="n",qop="auth,auth-int",charset=utf-8,algorithm=md5-sess`))
	f.Fuzz(func(t *testing.T, challenge []byte) {
		c := &Client{Service: "s", Host: "h", User: "u", Password: "p"}
		if response, err := c.Respond(challenge); (err == nil) != (len(response) > 0) {
			t.Errorf("Respond = %s, %v, want one of both", response, err)
		}
	})
}
