package learner

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// speak plays a correct synchronization and a few transactions after it: by SNAP, or by DIFF from a position at(1).
func speak(s *scripted, h *history, from Position) {
	one := h.create(at(1), "/a")
	s.discover()
	if from.Zxid == 0 {
		s.send(snap, at(1), nil)
		s.write(h.stream())
	} else {
		s.send(diff, at(2), nil)
		s.propose(one)
	}
	s.propose(h.create(at(2), "/b"))
	s.finish()
	s.inform(h.create(at(3), "/c"))
	s.send(ping, at(3), nil)
	s.expect(ping)
	s.inform(h.remove(at(4), "/c"))
}

// misbehaviour is what a leader does wrong, to a learner at a position.
type misbehaviour struct {
	name   string
	from   znode.Zxid // 0: at(1)
	script func(s *scripted)
	want   error
	calls  string // of the handler
}

// raw are five transactions.
var raw = func() map[znode.Zxid][]byte {
	h := newHistory()
	for i, path := range []string{"/1", "/2", "/3", "/4", "/5"} {
		h.create(at(int64(i+1)), path)
	}
	return h.raw
}()

var beforeUpToDate = []misbehaviour{
	{"another first packet", 0, func(s *scripted) { s.expect(observerInfo); s.send(ping, 0, nil) },
		ErrProtocol, ""},
	{"no packet of a leader", 0, func(s *scripted) { s.expect(observerInfo); s.write([]byte("HTTP/1.1 400 Bad")) },
		ErrProtocol, ""},
	{"an old epoch", 0, func(s *scripted) { s.expect(observerInfo); s.send(leaderInfo, 4<<32, nil) },
		ErrOldLeader, ""},
	{"nothing to synchronize", 0, func(s *scripted) { s.discover(); s.send(inform, at(2), raw[at(2)]) },
		ErrProtocol, ""},
	{"a huge packet", 0, func(s *scripted) {
		s.discover()
		s.write(jute.AppendInt32(jute.AppendInt64(jute.AppendInt32(nil, 13), 0), 1<<30))
	}, ErrProtocol, ""},
	{"a negative length", 0, func(s *scripted) {
		s.discover()
		s.write(jute.AppendInt32(jute.AppendInt64(jute.AppendInt32(nil, 13), 0), -7))
	}, ErrProtocol, ""},
	{"a negative count", 0, func(s *scripted) {
		s.discover()
		s.write(jute.AppendInt32(jute.AppendInt32(jute.AppendInt64(jute.AppendInt32(nil, 13), 0), -1), -7))
	}, ErrProtocol, ""},
	{"an end inside a packet", 0, func(s *scripted) { s.discover(); s.write([]byte{0, 0, 0}) },
		jute.ErrTruncated, ""},
	{"an unknown packet", 0, func(s *scripted) { begin(s); s.send(99, 0, []byte("?")) }, ErrProtocol, ""},
	{"a packet of a learner", 0, func(s *scripted) { begin(s); s.send(observerInfo, 0, nil) }, ErrProtocol, ""},
	{"UPTODATE without NEWLEADER", 0, func(s *scripted) { begin(s); s.send(upToDate, -1, nil) }, ErrProtocol, ""},
	{"NEWLEADER twice", 0, func(s *scripted) {
		begin(s)
		s.send(newLeader, at(0), nil)
		s.expect(ack)
		s.send(newLeader, at(0), nil)
	}, ErrProtocol, ""},
	{"NEWLEADER of another epoch", 0, func(s *scripted) { begin(s); s.send(newLeader, 6<<32, nil) },
		ErrProtocol, ""},
	{"the end before UPTODATE", 0, func(s *scripted) {
		begin(s)
		s.propose(raw[at(2)])
		s.send(newLeader, at(0), nil)
		s.expect(ack)
	}, io.EOF, ""},
	{"a configuration with our id", 0, func(s *scripted) {
		begin(s)
		s.send(newLeader, at(0), []byte(strings.ReplaceAll(configText, "server.2=", "server.200=")))
	}, ErrListed, ""},
	{"COMMIT without PROPOSAL", 0, func(s *scripted) { begin(s); s.send(commit, at(2), nil) }, ErrGap, ""},
	{"PROPOSAL twice", 0, func(s *scripted) {
		begin(s)
		s.send(proposal, at(2), raw[at(2)])
		s.send(proposal, at(2), raw[at(2)])
	}, ErrProtocol, ""},
	{"a gap in DIFF", 0, func(s *scripted) { begin(s); s.propose(raw[at(3)]) }, ErrGap, ""},
	{"DIFF ends early", 0, func(s *scripted) {
		s.discover()
		s.send(diff, at(3), nil)
		s.propose(raw[at(2)])
		s.send(newLeader, at(0), nil)
		s.expect(ack)
		s.send(upToDate, -1, nil)
	}, ErrGap, ""},
	{"another zxid in the packet", 0, func(s *scripted) { begin(s); s.send(inform, at(2), raw[at(3)]) },
		ErrProtocol, ""},
	{"a reconfiguration with our id meanwhile", 0, func(s *scripted) {
		begin(s)
		text := reconfig(at(2), "server.200=c:1:2\nversion=500000002")
		s.send(informAndActivate, at(2), append(make([]byte, 8), text...))
	}, ErrListed, ""},
	{"INFORM without a header", 0, func(s *scripted) { begin(s); s.send(inform, at(2), []byte("short")) },
		ErrProtocol, ""},
	{"INFORM with null", 0, func(s *scripted) { begin(s); s.send(inform, at(2), nil) }, ErrProtocol, ""},
	{"INFORMANDACTIVATE without a leader", 0, func(s *scripted) { begin(s); s.send(informAndActivate, at(2), nil) },
		ErrProtocol, ""},
}

var afterUpToDate = []misbehaviour{
	{"a gap", 0, func(s *scripted) { serve(s); s.inform(raw[at(2)]); s.inform(raw[at(4)]) },
		ErrGap, "leader DIFF, 0x500000002"},
	{"a repeat", 0, func(s *scripted) { serve(s); s.inform(raw[at(2)]); s.inform(raw[at(2)]) },
		ErrGap, "leader DIFF, 0x500000002"},
	{"a later epoch", 0, func(s *scripted) { serve(s); s.send(inform, 6<<32+1, header(9, 6<<32+1, -1)) },
		ErrGap, "leader DIFF"},
	{"an epoch that does not begin with 1", 4<<32 + 9, func(s *scripted) { serve(s); s.inform(raw[at(2)]) },
		ErrGap, "leader DIFF"},
	{"a transaction without a counter", 4<<32 + 9, func(s *scripted) {
		serve(s)
		s.send(inform, at(0), header(9, at(0), -1))
	},
		ErrGap, "leader DIFF"},
	{"a negative zxid", 0, func(s *scripted) { serve(s); s.send(inform, -1, header(9, -1, -1)) },
		ErrGap, "leader DIFF"},
	{"an unknown transaction", 0, func(s *scripted) { serve(s); s.send(inform, at(2), header(9, at(2), 77)) },
		replica.ErrUnknownOp, "leader DIFF"},
	{"SYNC without a request", 0, func(s *scripted) { serve(s); s.send(syncPacket, 0, nil) },
		ErrProtocol, "leader DIFF"},
	{"REVALIDATE with null", 0, func(s *scripted) { serve(s); s.send(revalidate, 0, nil) },
		ErrProtocol, "leader DIFF"},
	{"UPTODATE twice", 0, func(s *scripted) { serve(s); s.send(upToDate, -1, nil) }, ErrProtocol, "leader DIFF"},
	{"a reconfiguration with our id", 0, func(s *scripted) {
		serve(s)
		text := reconfig(at(2), "server.200=c:1:2\nversion=500000002")
		s.send(informAndActivate, at(2), append(make([]byte, 8), text...))
	}, ErrListed, "leader DIFF, 0x500000002"},
}

// Whatever a leader does wrong is an error of the right kind, and nothing that comes after it is handed on.
func TestFollow_LeaderMisbehaves(t *testing.T) {
	for _, test := range slices.Concat(beforeUpToDate, afterUpToDate) {
		t.Run(test.name, func(t *testing.T) {
			r := &recorder{}
			from := Position{Zxid: test.from, Epoch: 5}
			if test.from == 0 {
				from.Zxid = at(1)
			}
			err := play(t, Config{}, from, r, test.script)
			if !errors.Is(err, test.want) || errors.Is(err, ErrGap) != (test.want == ErrGap) {
				t.Errorf("Follow = %v\nwant %v", err, test.want)
			}
			if calls := strings.Join(r.calls, ", "); calls != test.calls {
				t.Errorf("got the calls %s\nwant %s", calls, test.calls)
			}
		})
	}
}

// begin discovers, and begins a DIFF that promises nothing.
func begin(s *scripted) {
	p := s.discover()
	s.send(diff, p.zxid, nil)
}

// serve goes on to UPTODATE.
func serve(s *scripted) {
	begin(s)
	s.finish()
}

func reconfig(zxid znode.Zxid, text string) []byte {
	b := jute.AppendBuffer(jute.AppendUstring(header(9, zxid, replica.OpReconfig), znode.ConfigPath), []byte(text))
	return jute.AppendInt32(b, -1)
}

// A bad snapshot is an error, and nothing of it is handed on.
func TestFollow_BadSnapshot(t *testing.T) {
	h := newHistory()
	h.create(at(1), "/a")
	good := h.stream()
	two, three := h.create(at(2), "/b"), h.create(at(3), "/c")
	cut := good[:len(good)-len(signature)]
	finish := func(s *scripted) { s.finish(); s.inform(two) }
	for _, test := range []struct {
		name   string
		zxid   znode.Zxid
		stream []byte
		then   func(s *scripted)
		want   error
	}{
		{"another end", at(1), append(slices.Clone(cut), "NobodyHere"...), func(*scripted) {}, ErrProtocol},
		{"no end", at(1), cut, func(*scripted) {}, jute.ErrTruncated},
		{"a session that destroys an ensemble", at(1), append(jute.AppendInt64(jute.AppendInt32(nil, 1), -1<<56+1),
			0, 0, 0, 9), func(*scripted) {}, errAny},
		{"a negative count", at(1), []byte{0xff, 0xff, 0xff, 0xf0}, func(*scripted) {}, ErrProtocol},
		{"a gap before the next transaction", at(1), good, func(s *scripted) { s.inform(three) }, ErrGap},
		{"transactions that end before the snapshot", at(3), good, func(s *scripted) { s.inform(two); finish(s) },
			ErrGap},
		{"a transaction that does not fit", at(1), good, func(s *scripted) {
			s.send(inform, at(2), jute.AppendInt32(jute.AppendUstring(header(9, at(2), replica.OpSetACL), "/a"), -1))
		}, errAny},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &recorder{}
			err := play(t, Config{}, Position{}, r, func(s *scripted) {
				s.discover()
				s.send(snap, test.zxid, nil)
				s.write(test.stream)
				defer func() { _ = recover() }() // the learner may end the connection first
				test.then(s)
			})
			if err == nil || test.want != errAny && !errors.Is(err, test.want) {
				t.Errorf("Follow = %v\nwant %v", err, test.want)
			}
			r.want(t)
		})
	}
}

var errAny = errors.New("any error")

// A TRUNC behind what was reported as committed is for the operator to judge.
func TestFollow_Trunc(t *testing.T) {
	h := newHistory()
	for i := range int64(4) {
		h.create(at(i+1), fmt.Sprintf("/%d", i))
	}
	for _, test := range []struct {
		name     string
		have, to znode.Zxid
		want     error
	}{
		{"behind us", at(3), at(2), &TruncatedError{To: at(2), Have: at(3)}},
		{"far behind us", at(3), 4<<32 + 7, &TruncatedError{To: 4<<32 + 7, Have: at(3)}},
		{"of what was never reported", at(3), at(3), io.EOF},
		{"of the snapshot of a leader without transactions", at(0), 4<<32 + 7, ErrGap},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &recorder{}
			err := play(t, Config{}, Position{Zxid: test.have}, r, func(s *scripted) {
				s.discover()
				s.send(trunc, test.to, nil)
				if test.want != io.EOF {
					s.silent()
					return
				}
				s.finish()
				s.inform(h.raw[at(4)])
			})
			var got *TruncatedError
			if want, ok := test.want.(*TruncatedError); ok {
				if !errors.As(err, &got) || *got != *want {
					t.Errorf("Follow = %v\nwant %v", err, want)
				}
			} else if !errors.Is(err, test.want) {
				t.Errorf("Follow = %v\nwant %v", err, test.want)
			}
			if test.want == io.EOF {
				r.want(t, "leader TRUNC", "0x500000004")
			} else {
				r.want(t)
			}
		})
	}
}

// bytesOf plays a session, and returns what the leader sent, and where each of its packets ends.
func bytesOf(t *testing.T, from Position) []byte {
	var sent []byte
	err := play(t, Config{}, from, &recorder{}, func(s *scripted) {
		s.Conn = &tee{s.Conn, &sent}
		speak(s, newHistory(), from)
	})
	wantError(t, err, io.EOF)
	return sent
}

// A connection that ends after any byte of a session ends Follow, and what was handed on is a beginning of the whole.
func TestFollow_CutAtEveryByte(t *testing.T) {
	for _, from := range []Position{{}, {Zxid: at(1)}} {
		whole := &recorder{}
		sent := bytesOf(t, from)
		for n := 0; n <= len(sent); n++ {
			r := &recorder{}
			err := play(t, Config{}, from, r, func(s *scripted) {
				s.write(sent[:n])
				synctest.Wait() // until the learner has read it and answered
			})
			if err == nil || errors.Is(err, ErrGap) || errors.Is(err, ErrProtocol) {
				t.Fatalf("after %d of %d bytes: Follow = %v, want a lost connection", n, len(sent), err)
			}
			if len(r.calls) < len(whole.calls) || !slices.Equal(r.calls[:len(whole.calls)], whole.calls) ||
				r.wrong > 0 {
				t.Fatalf("after %d of %d bytes: got the calls %v after %v, %d digests differ", n, len(sent), r.calls,
					whole.calls, r.wrong)
			}
			whole = r
		}
		if len(whole.calls) < 3 {
			t.Errorf("got the calls %v after all bytes, want some", whole.calls)
		}
	}
}

// leaderInfoBytes is the length of LEADERINFO.
const leaderInfoBytes = 4 + 8 + 4 + 4 + 4

// A leader that is silent, after any byte of a session, is left in time.
func TestFollow_Silence(t *testing.T) {
	cfg := Config{Timeout: 7 * time.Second, SyncTimeout: 31 * time.Second}
	for _, from := range []Position{{}, {Zxid: at(1)}} {
		sent := bytesOf(t, from)
		for n := 0; n <= len(sent); n += 7 {
			r := &recorder{}
			var took time.Duration
			err := play(t, cfg, from, r, func(s *scripted) {
				s.write(sent[:n])
				begin := time.Now()
				s.silent()
				took = time.Since(begin)
			})
			want := cfg.SyncTimeout
			if len(r.calls) > 0 || n < leaderInfoBytes {
				want = cfg.Timeout
			}
			if took != want {
				t.Errorf("silent after %d of %d bytes: left after %v, want %v", n, len(sent), took, want)
			}
			if err == nil || errors.Is(err, ErrGap) || errors.Is(err, ErrProtocol) {
				t.Fatalf("silent after %d of %d bytes: Follow = %v, want a timeout", n, len(sent), err)
			}
		}
	}
}
