package peerkeys

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

const joinSecret = "0123456789abcdef0123456789abcdef"

func write(t *testing.T, text string, mode os.FileMode) string {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, c Config) *Keys {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	c.Logger = slog.New(slog.DiscardHandler)
	k, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// connect has a newcomer dial a member; both ends are closed with the test.
func connect(t *testing.T, from, to *Keys) (newcomer, member net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := to.Listener(l).Accept()
		if err == nil {
			_, err = c.Read(make([]byte, 1)) // the handshake
		}
		if err != nil {
			c = nil
		}
		accepted <- c
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if newcomer, err = from.Client(t.Context(), raw, 1, true); err != nil {
		t.Fatal(err)
	}
	if _, err := newcomer.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if member = <-accepted; member == nil {
		t.Fatal("refused")
	}
	t.Cleanup(func() { newcomer.Close(); member.Close() })
	return newcomer, member
}

func withToken(k *Keys, id state.ServerID, sum [32]byte, until time.Time) {
	k.Applied(9, map[state.ServerID]state.Member{
		1:  {Key: k.Own()},
		id: {Token: sum, TokenUntil: until.UnixMilli()},
	}, map[state.ServerID]bool{1: true, id: true})
}

func TestProof_BothSides(t *testing.T) {
	once, sum := NewToken()
	if len(once) < minSecret {
		t.Errorf("a token has %d characters", len(once))
	}
	later, before := time.Now().Add(time.Minute), time.Now().Add(-time.Second)
	for _, x := range []struct {
		name             string
		newcomer, member string
		asked            state.ServerID // whose token the member knows
		until            time.Time
		good             bool
	}{
		{"the join secret", joinSecret, joinSecret, 5, before, true},
		{"another secret", strings.Repeat("x", 32), joinSecret, 5, later, false},
		{"a token", once, "", 4, later, true},
		{"a token beside a join secret", once, joinSecret, 4, later, true},
		{"another server's token", once, "", 5, later, false},
		{"a token that is too old", once, "", 4, before, false},
		{"a token that has been used, and still lies in the file of a member", once, once, 5, later, false},
		{"no secret", "", joinSecret, 4, later, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			file := func(secret string) string {
				if secret == "" {
					return ""
				}
				return write(t, secret+"\n", 0o600)
			}
			n, m := open(t, Config{SecretFile: file(x.newcomer)}), open(t, Config{SecretFile: file(x.member)})
			a, b := connect(t, n, m)
			m.SetMember()
			withToken(m, x.asked, sum, x.until)
			shown, err := n.Prove(a)
			if err != nil {
				t.Fatal(err)
			}
			answer, used := m.CheckProof(b, 4, shown)
			if (answer != nil) != x.good || n.Proved(a, answer) != x.good {
				t.Errorf("the answer is %x", answer)
			}
			if wantUsed := x.good && x.newcomer == once; (used == sum) != wantUsed {
				t.Errorf("used %x", used)
			}
			if x.good && n.Proved(a, shown) {
				t.Error("a newcomer's own proof is taken for the member's")
			}
		})
	}
}

// A man in the middle has a connection with each side, and passes on what they say.
func TestProof_ManInTheMiddle(t *testing.T) {
	c := Config{SecretFile: write(t, joinSecret, 0o600)}
	n, m, middle := open(t, c), open(t, c), open(t, Config{})
	toMiddle, _ := connect(t, n, middle)
	_, fromMiddle := connect(t, middle, m)
	shown, err := n.Prove(toMiddle)
	if err != nil {
		t.Fatal(err)
	}
	if answer, _ := m.CheckProof(fromMiddle, 4, shown); answer != nil {
		t.Error("a proof of another connection is good")
	}
	direct, atMember := connect(t, n, m)
	if shown, err = n.Prove(direct); err != nil {
		t.Fatal(err)
	}
	answer, _ := m.CheckProof(atMember, 4, shown)
	if n.Proved(toMiddle, answer) {
		t.Error("an answer of another connection is good")
	}
}

func TestOpen_Refuses(t *testing.T) {
	for want, c := range map[string]Config{
		"could be guessed":       {SecretFile: write(t, strings.Repeat("x", 31), 0o600)},
		"others could use it":    {SecretFile: write(t, joinSecret, 0o604)},
		"peer.key, this server":  {Dir: filepath.Dir(file(t, ownFile, "-----BEGIN PRIVATE KEY-----"))},
		"other servers, is dama": {Dir: filepath.Dir(file(t, tableFile, `{"keys":{"1":"00"}}`))},
		"has version 2":          {Dir: filepath.Dir(file(t, tableFile, `{"version":2}`))},
		"for server 255":         {Dir: filepath.Dir(file(t, tableFile, `{"version":1,"keys":{"255":"`+strings.Repeat("11", 32)+`"}}`))},
	} {
		if c.Dir == "" {
			c.Dir = t.TempDir()
		}
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	open(t, Config{SecretFile: write(t, joinSecret, 0o640)}) // a group may be an operator's choice
	open(t, Config{SecretFile: filepath.Join(t.TempDir(), "gone")})
}

func file(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The table follows the log, an older one replaces nothing, and it is the same after a restart.
func TestTable_FollowsTheLog(t *testing.T) {
	dir := t.TempDir()
	k := open(t, Config{Dir: dir})
	key := func(b byte) Key { return Key{b} }
	if err := k.Update(&Table{Keys: map[state.ServerID]Key{1: k.Own(), 2: key(2), 3: key(3)}}); err != nil {
		t.Fatal(err)
	}
	k.SetMember()
	cut := make(chan state.ServerID, 8)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); k.Run(ctx, func(id state.ServerID) { cut <- id }) }()
	all := map[state.ServerID]bool{1: true, 2: true, 3: false}
	without3 := map[state.ServerID]bool{1: true, 2: true}
	for _, x := range []struct {
		index      uint64
		members    map[state.ServerID]state.Member
		configured map[state.ServerID]bool
		want       map[state.ServerID]Key
		cut        state.ServerID // 0: none
	}{
		{5, nil, all, map[state.ServerID]Key{1: k.Own(), 2: key(2), 3: key(3)}, 0}, // nothing has been published
		{6, map[state.ServerID]state.Member{2: {Key: key(9)}}, all, map[state.ServerID]Key{1: k.Own(), 2: key(9), 3: key(3)}, 2},
		{4, map[state.ServerID]state.Member{2: {Key: key(2)}}, all, map[state.ServerID]Key{1: k.Own(), 2: key(9), 3: key(3)}, 0},
		{7, map[state.ServerID]state.Member{2: {Key: key(9)}}, without3, map[state.ServerID]Key{1: k.Own(), 2: key(9)}, 3},
		{8, map[state.ServerID]state.Member{2: {Addr: "h:1"}}, without3, map[state.ServerID]Key{1: k.Own()}, 2}, // added again
	} {
		k.Applied(x.index, x.members, x.configured)
		if got := k.Table().Keys; !maps.Equal(got, x.want) {
			t.Errorf("after %d: %v", x.index, got)
		}
		if x.cut != 0 {
			if got := <-cut; got != x.cut {
				t.Errorf("after %d: server %d is cut off", x.index, got)
			}
		}
	}
	cancel()
	<-ended
	if err := k.save(); err != nil {
		t.Fatal(err)
	}
	again := open(t, Config{Dir: dir})
	if t2 := again.Table(); t2.Index != 8 || !maps.Equal(t2.Keys, k.Table().Keys) || again.Own() != k.Own() {
		t.Errorf("after a restart: %+v, want index 8 and the keys %+v", t2, k.Table().Keys)
	}
}

// A stranger passes the TLS handshake only while a server may join.
func TestAdmit_OpenWhileSomebodyMayJoin(t *testing.T) {
	once, sum := NewToken()
	for _, x := range []struct {
		name   string
		change func(*Keys)
		file   string
		open   bool
	}{
		{"before the formation", func(*Keys) {}, "", true},
		{"a member", (*Keys).SetMember, "", false},
		{"a member with a join secret", (*Keys).SetMember, joinSecret, true},
		{"a member with the token that it has used", (*Keys).SetMember, once, false},
		{"a token", func(k *Keys) { k.SetMember(); withToken(k, 4, sum, time.Now().Add(time.Minute)) }, "", true},
		{"an old token", func(k *Keys) { k.SetMember(); withToken(k, 4, sum, time.Now()) }, "", false},
	} {
		c := Config{}
		if x.file != "" {
			c.SecretFile = write(t, x.file, 0o600)
		}
		k, stranger := open(t, c), open(t, Config{})
		x.change(k)
		err := k.checkShown(tls.ConnectionState{PeerCertificates: []*x509.Certificate{stranger.tls.client.Certificates[0].Leaf}})
		if (err == nil) != x.open {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte(`{"index":3,"keys":{"1":"` + strings.Repeat("ab", 32) + `"}}`))
	f.Add([]byte(`{"keys":{"-1":""}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var a, b Table
		if json.Unmarshal(text, &a) != nil || a.check() != nil {
			return
		}
		again, err := json.Marshal(&a)
		if err := errors.Join(err, json.Unmarshal(again, &b), b.check()); err != nil {
			t.Fatal(err)
		}
		if a.Index != b.Index || !maps.Equal(a.Keys, b.Keys) {
			t.Errorf("%+v became %+v", a, b)
		}
	})
}
