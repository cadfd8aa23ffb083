package fourletter

import (
	"strings"
	"testing"
)

const srvr = `Zookeeper version: 3.9.3-c26634f34490bb0ea7a09cc51e05ede3b4e320ee, built on 2024-10-17 23:21 UTC
Latency min/avg/max: 0/0.5/17
Received: 12
Sent: 11
Connections: 3
Outstanding: 2
Zxid: 0x20000000a
Mode: follower
Node count: 7
`

func TestServer_ParseSrvr(t *testing.T) {
	var s Server
	if err := s.ParseSrvr(srvr); err != nil {
		t.Fatal(err)
	}
	want := Server{
		Role: "follower", Version: "3.9.3-c26634f34490bb0ea7a09cc51e05ede3b4e320ee", Zxid: 0x20000000a,
		AvgLatency: 0.5, MaxLatency: 17, Connections: 3, Outstanding: 2, Znodes: 7,
	}
	if s != want {
		t.Errorf("%+v\nwant %+v", s, want)
	}
	for _, bad := range []string{
		"", "HTTP/1.1 400 Bad Request", strings.Replace(srvr, "0x20000000a", "x", 1),
		strings.Replace(srvr, "0/0.5/17", "0/17", 1), strings.Replace(srvr, "Mode", "Mood", 1),
	} {
		if err := new(Server).ParseSrvr(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestServer_ParseMntr(t *testing.T) {
	var s Server
	s.ParseMntr("zk_global_sessions\t3\nzk_tls_certificate_expiry_seconds\t-12.5\n" +
		"zk_tls_peer_certificate_expiry_seconds\t3\nzk_watch_count\tx\n")
	if s.Sessions != 3 || s.Watches != 0 || s.CertificateSeconds == nil || *s.CertificateSeconds != -12.5 ||
		s.PeerCertificateSeconds == nil || *s.PeerCertificateSeconds != 3 {
		t.Errorf("got %+v, want 3 sessions and two certificates", s)
	}
}

func TestServer_Behind(t *testing.T) {
	all := []Server{{Zxid: 0x200000005}, {Zxid: 0x200000009}, {Zxid: 0x1000000ff}, {Zxid: 0x300000000, Err: ErrNotServing}}
	for i, want := range []int64{4, 0, -1} {
		if got := all[i].Behind(all); got != want {
			t.Errorf("server %d is %d behind, want %d", i, got, want)
		}
	}
	if HasLeader(all) {
		t.Error("a leader among servers without one")
	}
}

func FuzzServer_ParseSrvr(f *testing.F) {
	f.Add(srvr)
	f.Add("Latency min/avg/max: 1//2\nZxid: 0x\n: \n")
	f.Fuzz(func(t *testing.T, answer string) {
		var s Server
		_ = refusal(answer)
		s.ParseMntr(answer)
		if err := s.ParseSrvr(answer); err == nil && !strings.Contains(answer, "Mode") {
			t.Errorf("accepted %q", answer)
		}
	})
}
