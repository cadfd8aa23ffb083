package gssapi

import (
	"errors"
	"strings"
	"testing"
)

// fake takes tokens that begin with "ok", and wraps by a letter.
type fake struct{ mutual bool }

func (f fake) Accept(token []byte) (Context, []byte, error) {
	switch {
	case !strings.HasPrefix(string(token), "ok"):
		return nil, nil, errors.New("bad ticket")
	case f.mutual:
		return f, []byte("here I am"), nil
	}
	return f, nil, nil
}

func (fake) Initiator() string { return "bob@R" }

func (fake) Wrap(m []byte) ([]byte, error) { return append([]byte("w"), m...), nil }

func (fake) Unwrap(m []byte) ([]byte, error) {
	if len(m) == 0 || m[0] != 'w' {
		return nil, errors.New("bad checksum")
	}
	return m[1:], nil
}

const offered = "w\x01\x00\x00\x00"

func TestNext(t *testing.T) {
	type round struct{ token, reply, user, err string }
	for name, x := range map[string]struct {
		mutual bool
		rounds []round
	}{
		"mutual": {true, []round{{"ok", "here I am", "", ""}, {"", offered, "", ""}, {offered, "", "bob@R", ""},
			{offered, "", "", "has ended"}}},
		"not mutual, acts for another": {false, []round{{"ok", offered, "", ""}, {offered + "root", "", "bob@R", ""}}},
		"no ticket":                    {true, []round{{"no", "", "", "bad ticket"}, {"ok", "", "", "has ended"}}},
		"another mechanism":            {true, []round{{"", "", "", "DIGEST-MD5"}, {"ok", "", "", "has ended"}}},
		"out of turn":                  {true, []round{{"ok", "here I am", "", ""}, {"x", "", "", "server's turn"}, {"", "", "", "ended"}}},
		"cut off":                      {false, []round{{"ok", offered, "", ""}, {offered[:4], "", "", "layer"}, {offered, "", "", "ended"}}},
		"a layer":                      {false, []round{{"ok", offered, "", ""}, {"w\x02\x00\x00\x00", "", "", "layer"}}},
		"two layers":                   {false, []round{{"ok", offered, "", ""}, {"w\x03\x00\x00\x00", "", "", "layer"}}},
		"forged":                       {false, []round{{"ok", offered, "", ""}, {"\x01\x00\x00\x00", "", "", "checksum"}}},
		"nothing":                      {false, []round{{"ok", offered, "", ""}, {"", "", "", "checksum"}}},
		"too much":                     {true, []round{{"ok" + strings.Repeat("x", maxToken), "", "", "are allowed"}, {"ok", "", "", "ended"}}},
	} {
		e := New(fake{x.mutual})
		for i, r := range x.rounds {
			reply, user, err := e.Next([]byte(r.token))
			if string(reply) != r.reply || user != r.user || (err == nil) != (r.err == "") ||
				err != nil && !strings.Contains(err.Error(), r.err) {
				t.Errorf("%s, round %d: reply %q, user %q, error %v; want %q, %q, %q",
					name, i, reply, user, err, r.reply, r.user, r.err)
			}
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add([]byte("ok"), []byte{}, []byte(offered), true)
	f.Add([]byte("ok"), []byte(offered), []byte(offered), false)
	f.Fuzz(func(t *testing.T, a, b, c []byte, mutual bool) {
		e := New(fake{mutual})
		for i, token := range [][]byte{a, b, c} {
			_, user, err := e.Next(token)
			if user != "" && (err != nil || i == 0 || !strings.HasPrefix(string(a), "ok") || token[1] != noLayer) {
				t.Errorf("tokens %q %q %q: user %q (%v), want none", a, b, c, user, err)
			}
		}
	})
}
