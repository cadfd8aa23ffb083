package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// Secrets are planted wherever a server has any; the bundle has none of them.
func TestSupportBundle_HasNoSecrets(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pair := certs.Authority(t, "ca").Issue(t, "server", nil)
	key := string(pair.KeyPEM(t))
	const hash, token, storePassword, pathPassword, data = "lK75jTNcA+U9vtVEw5vB51mj/w4=", "tokentokentokentokentokentoken1",
		"storepassword1", "pathpassword1", "dataofaznode1"
	const superPassword = "secret" // of the hash
	e := zklitetest.Start(t, zklitetest.WithSetting("DigestAuthenticationProvider.superDigest", "super:"+hash))
	c, err := client.Connect(t.Context(), e.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Create(t.Context(), "/planted", []byte(data), client.Persistent); err != nil {
		t.Fatal(err)
	}
	port := e.HTTPAddrs()[0][strings.LastIndex(e.HTTPAddrs()[0], ":")+1:]
	cfg := write("zoo.cfg", "dataDir="+dir+"\nadmin.serverPort="+port+"\nDigestAuthenticationProvider.superDigest=super:"+hash+
		"\nsecureClientPort=0\nssl.clientAuth=none\nssl.keyStore.location="+write("key.pem", key)+
		"\nssl.keyStore.password="+storePassword+"\nssl.trustStore.passwordPath="+write("password", pathPassword)+
		"\nhttp.tokenFile="+write("tokens", token+" super\n")+"\n")
	out := filepath.Join(dir, "out.tar.gz")
	root := rootCommand()
	var said bytes.Buffer
	root.SetOut(&said)
	root.SetArgs([]string{"support", "bundle", out, "--config", cfg, "--log", write("log", "a line of the log\n"),
		"--auth", "digest:super", "--password-file", write("super", superPassword+"\n")})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := untar(t, out)
	all := ""
	for name, text := range files {
		all += name + "\n" + text + "\n"
	}
	for _, secret := range []string{
		hash, token, storePassword, pathPassword, data, "super:" + superPassword, strings.Split(key, "\n")[1],
	} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is in the bundle", secret)
		}
	}
	at := "zk-lite-support/127.0.0.1_" + port + "/"
	for name, want := range map[string]string{
		"zk-lite-support/settings.txt": "DigestAuthenticationProvider.superDigest\tset, and not shown",
		"zk-lite-support/doctor.json":  `"running": true`, "zk-lite-support/version.json": `"go_version"`,
		"zk-lite-support/server.log": "a line of the log", at + "metrics": "zk_lite_info", at + "livez": `"ok"`,
		at + "readyz_verbose": `"checks"`, at + "v1_cluster": `"members"`,
		at + "v1_top_by=requests": `"/planted"`, at + "v1_slow_requests": `"items"`, at + "v1_slow_entries": `"items"`,
		at + "v1_expired-sessions": `"items"`,
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s: %.200q, want %q", name, files[name], want)
		}
	}
	root.SetArgs([]string{"support", "bundle", out, "--config", cfg})
	if err := root.ExecuteContext(t.Context()); !errors.Is(err, os.ErrExist) {
		t.Errorf("an older bundle is written over: %v", err)
	}
}

func untar(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}
