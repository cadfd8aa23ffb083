package rest

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/certs"
)

func FuzzParseClient(f *testing.F) {
	cert := certs.Authority(f, "ca").Cert
	known, err := json.Marshal(client{Address: "10.0.0.1", Certificate: cert.Raw, Local: true})
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", "{}", "null", `{"address":1}`, `{"certificate":""}`, `{"certificate":"MA=="}`, string(known)} {
		f.Add(text)
	}
	if c, err := parseClient(string(known)); err != nil || !c.cert.Equal(cert) || c.Address != "10.0.0.1" || !c.Local {
		f.Errorf("%+v, %v", c, err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseClient(text)
		if err != nil && !reflect.DeepEqual(c, client{}) || c.Certificate != nil && c.cert == nil {
			t.Errorf("%+v, %v", c, err)
		}
	})
}
