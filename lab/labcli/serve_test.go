package labcli

import "testing"

func TestServe_Address_IsLoopback(t *testing.T) {
	for _, c := range []struct {
		address string
		anybody bool
		fine    bool
	}{
		{"127.0.0.1:0", false, true}, {"[::1]:80", false, true}, {"localhost:80", false, true},
		{"0.0.0.0:80", false, false}, {":80", false, false}, {"10.0.0.1:80", false, false},
		{"0.0.0.0:80", true, true}, {"127.0.0.1", false, false},
	} {
		if err := checkAddress(c.address, c.anybody); (err == nil) != c.fine {
			t.Errorf("%s, anybody %t: %v", c.address, c.anybody, err)
		}
	}
}
