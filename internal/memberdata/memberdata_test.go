package memberdata_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/memberdata"
)

func TestParse(t *testing.T) {
	addr := netip.MustParseAddr
	for data, want := range map[string]memberdata.Info{
		"":                               {},
		"hello":                          {},
		"web1:4711":                      {}, // host:pid, zk-lite join's default
		"web1.example.org:80":            {},
		"10.0.0.1":                       {Addr: addr("10.0.0.1")},
		" 10.0.0.1:80\n":                 {Addr: addr("10.0.0.1"), Port: 80},
		"[2001:db8::1]:80":               {Addr: addr("2001:db8::1"), Port: 80},
		"::ffff:10.0.0.1":                {Addr: addr("10.0.0.1")},
		"fe80::1%eth0":                   {},
		"0.0.0.0:80":                     {},
		"224.0.0.1":                      {},
		"10.0.0.1:70000":                 {},
		"http://10.0.0.1:8080/x":         {Addr: addr("10.0.0.1"), Port: 8080},
		"https://[2001:db8::1]":          {Addr: addr("2001:db8::1"), Port: 443},
		"http://web1.example.org/":       {Host: "web1.example.org", Port: 80},
		"tcp://web1":                     {Host: "web1"},
		"http://a..b:80":                 {},
		"http://a b:80":                  {},
		`{"address":"web1.example.org"}`: {Host: "web1.example.org"},
		`{"address":"10.0.0.1:9"}`:       {Addr: addr("10.0.0.1"), Port: 9},
		`{"name":"web","id":"1","address":"10.0.0.1","port":80,"sslPort":null,"payload":{"x":[1]}}`: {
			Addr: addr("10.0.0.1"), Port: 80},
		`{"address":"10.0.0.1","port":null,"sslPort":443}`:      {Addr: addr("10.0.0.1"), Port: 443},
		`{"address":"10.0.0.1","port":80,"enabled":false}`:      {Addr: addr("10.0.0.1"), Port: 80, Unhealthy: "no reason given"},
		`{"address":"10.0.0.1","payload":1,"port":"x"}`:         {Addr: addr("10.0.0.1")},
		`{"healthy":false,"reason":"exit","data":"10.0.0.1:8"}`: {Addr: addr("10.0.0.1"), Port: 8, Unhealthy: "exit"},
		`{"healthy":true,"reason":"fine","data":"10.0.0.1:8"}`:  {Addr: addr("10.0.0.1"), Port: 8},
		`{"healthy":false`: {},
		"\xff":             {},
		"10.0.0.1" + strings.Repeat(" ", memberdata.MaxBytes): {},
	} {
		if got := memberdata.Parse([]byte(data)); got != want {
			t.Errorf("%.80q: got %+v, want %+v", data, got, want)
		}
	}
}

// The mark keeps what the data said, and is seen, however long data and reason are.
func TestUnhealthy(t *testing.T) {
	for data, want := range map[string]string{
		"":            `{"healthy":false,"reason":"r"}`,
		"10.0.0.1:80": `{"data":"10.0.0.1:80","healthy":false,"reason":"r"}`,
		"null":        `{"data":"null","healthy":false,"reason":"r"}`,
		`{"a": 1}`:    `{"a":1,"healthy":false,"reason":"r"}`,
		`{"serviceType":"DYNAMIC","port":1}`: `{"enabled":false,"healthy":false,"port":1,"reason":"r",` +
			`"serviceType":"DYNAMIC"}`,
	} {
		got := memberdata.Unhealthy([]byte(data), "r")
		if string(got) != want {
			t.Errorf("%q: got %s, want %s", data, got, want)
		}
		if again := memberdata.Unhealthy(got, "r"); string(again) != want {
			t.Errorf("%q marked twice: got %s, want %s", data, again, want)
		}
	}
	for _, data := range []string{"x", strings.Repeat("x", memberdata.MaxBytes)} {
		for _, reason := range []string{"r", strings.Repeat("\x01", memberdata.MaxBytes), "\xff"} {
			marked := memberdata.Unhealthy([]byte(data), reason)
			if i := memberdata.Parse(marked); i.Unhealthy == "" || len(marked) > memberdata.MaxBytes {
				t.Errorf("%d bytes of data, %d of the reason: the mark has %d bytes and reads as %+v",
					len(data), len(reason), len(marked), i)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, data := range []string{"10.0.0.1:80", "http://a.example:1", `{"address":"::1","healthy":false}`, "", "{"} {
		f.Add([]byte(data), "r")
	}
	f.Fuzz(func(t *testing.T, data []byte, reason string) {
		i := memberdata.Parse(data)
		if i.Host != "" && (i.Addr.IsValid() || !memberdata.ValidHost(i.Host)) {
			t.Errorf("%q reads as %+v", data, i)
		}
		marked := memberdata.Unhealthy(data, reason)
		m := memberdata.Parse(marked)
		if !json.Valid(marked) || m.Unhealthy == "" {
			t.Errorf("%q marked is %q", data, marked)
		}
	})
}
