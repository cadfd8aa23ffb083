// Package memberdata reads what the data of a group's member say of it, its address and whether it is healthy, and
// marks data as those of a member that is not. The command line and the recipes write the mark; HTTP, DNS and the
// recipes read it. The package reads no tree and checks no member.
//
// Data are free text, of which it understands these forms; it takes nothing from others:
//
//	10.0.0.1, 10.0.0.1:80, [2001:db8::1]:80
//	http://10.0.0.1:8080/path, https://web1.example.org
//	{"address": "web1.example.org", "port": 80, ...}  a ServiceInstance of Curator's service discovery, or the like
//	{"healthy": false, "reason": "exit code 1", "data": "10.0.0.1:80"}  the mark
//
// The fields of the mark may be in an object with others, too.
//
// A host name with a port alone, web1:4711, is not understood as an address: it is what zk-lite join writes by default,
// and the number is that of a process.
package memberdata

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxBytes bounds the data that are understood: a member's data may be as large as any znode's, and those of many are
// read at a time.
const MaxBytes = 16 << 10

// Info is what data say of a member.
type Info struct {
	Addr netip.Addr // invalid: none, or Host is a name
	Host string     // a DNS name without a dot at its end; "": none, or it is Addr
	Port uint16     // 0: none
	// Unhealthy is why the member is not healthy; "": it is, as far as its data say.
	Unhealthy string
}

// object is the fields of JSON that have a meaning.
type object struct {
	Healthy *bool  `json:"healthy"`
	Reason  string `json:"reason"`
	Enabled *bool  `json:"enabled"` // Curator's: its clients use no instance for which it is false
	Data    string `json:"data"`    // as they were before the mark
	Address string `json:"address"`
	Port    uint16 `json:"port"`
	SSLPort uint16 `json:"sslPort"`
}

// Parse reads data.
func Parse(data []byte) (i Info) {
	if len(data) > MaxBytes || !utf8.Valid(data) {
		return i
	}
	text := strings.TrimSpace(string(data))
	if !strings.HasPrefix(text, "{") {
		return parseText(text)
	}
	var o object
	var wrongType *json.UnmarshalTypeError // of one field; the others are read
	if err := json.Unmarshal(data, &o); err != nil && !errors.As(err, &wrongType) {
		return i
	}
	if i = parseText(o.Data); o.Address != "" {
		if i = parseText(o.Address); i == (Info{}) {
			i.setHost(o.Address)
		}
	}
	switch {
	case o.Port != 0:
		i.Port = o.Port
	case o.SSLPort != 0:
		i.Port = o.SSLPort
	}
	if no := func(b *bool) bool { return b != nil && !*b }; no(o.Healthy) || no(o.Enabled) {
		if i.Unhealthy = o.Reason; i.Unhealthy == "" {
			i.Unhealthy = "no reason given"
		}
	}
	return i
}

func parseText(text string) (i Info) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		i.setAddr(at.Addr())
		i.Port = at.Port()
	} else if addr, err := netip.ParseAddr(text); err == nil {
		i.setAddr(addr)
	} else if u, err := url.Parse(text); err == nil && strings.Contains(text, "://") {
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		i.setHost(u.Hostname())
		n, _ := strconv.ParseUint(port, 10, 16) // 0 on an error: no port
		i.Port = uint16(n)
	}
	if !i.Addr.IsValid() && i.Host == "" {
		return Info{}
	}
	return i
}

func (i *Info) setHost(host string) {
	if addr, err := netip.ParseAddr(host); err == nil {
		i.setAddr(addr)
	} else if host = strings.TrimSuffix(host, "."); ValidHost(host) {
		i.Host = host
	}
}

// setAddr leaves out what leads to no other machine's service: 0.0.0.0, multicast, and addresses of one network device.
func (i *Info) setAddr(addr netip.Addr) {
	if addr = addr.Unmap(); addr.Zone() == "" && !addr.IsUnspecified() && !addr.IsMulticast() {
		i.Addr = addr
	}
}

// The limits of RFC 1035, 2.3.4; maxHost is that of the text, without the dot at the end.
const maxLabel, maxHost = 63, 253

// ValidHost reports whether a name consists of labels of letters, digits, - and _.
func ValidHost(name string) bool {
	if len(name) > maxHost {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel {
			return false
		}
		for _, c := range []byte(label) {
			letter := 'a' <= c|0x20 && c|0x20 <= 'z'
			if !letter && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

// Unhealthy returns data with the mark that the member is not healthy, and why. A JSON object keeps its fields; other
// data become the field data. Data too long to be understood are left out.
func Unhealthy(data []byte, reason string) []byte {
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &fields); err != nil || fields == nil {
		fields = map[string]json.RawMessage{}
		if len(data) > 0 {
			fields["data"] = encode(string(data))
		}
	}
	if _, instance := fields["serviceType"]; instance {
		fields["enabled"] = encode(false)
	}
	fields["healthy"], fields["reason"] = encode(false), encode(reason)
	if marked := encode(fields); len(marked) <= MaxBytes {
		return marked
	}
	return encode(map[string]any{"healthy": false, "reason": reason[:min(len(reason), maxReason)]})
}

// maxReason bounds the reason where there is no room for the data: JSON writes a byte as six at most.
const maxReason = MaxBytes/6 - 100

// encode cannot fail: it has text, bools, and objects that were decoded.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // people read it
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}
