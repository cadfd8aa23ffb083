package tlsfiles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files in testdata were made by keytool (Java 17) and openssl 3.0.
func TestStore_KeysOfOthers(t *testing.T) {
	for file, want := range map[string]struct{ password, subject string }{
		"key.jks":       {"secret-jks", "CN=java,O=zk-lite"},
		"key.p12":       {"secret-p12", "CN=java12"},
		"openssl.p12":   {"secret-p12", "CN=openssl"},
		"encrypted.pem": {"secret-pem", "CN=openssl"},
		"pkcs1.pem":     {"", "CN=openssl"},
	} {
		s := Store{Location: "testdata/" + file, Password: want.password}
		pair, err := s.readKey()
		if err != nil || pair.Leaf.Subject.String() != want.subject {
			t.Errorf("%s: certificate %+v (%v), want subject %s", file, pair.Leaf, err, want.subject)
		}
		if want.password == "" {
			continue
		}
		s.Password = "wrong"
		if _, err := s.readKey(); err == nil || !strings.Contains(err.Error(), file) ||
			strings.Contains(err.Error(), "wrong\"") {
			t.Errorf("%s with a wrong password: %v", file, err)
		}
	}
}

func TestStore_TrustedOfOthers(t *testing.T) {
	for file, password := range map[string]string{"trust.jks": "secret-jks", "trust.p12": "secret-p12", "cert.pem": ""} {
		s := Store{Location: "testdata/" + file, Password: password}
		all, _, err := s.readTrusted()
		if err != nil || len(all) != 1 || all[0].Subject.CommonName != "java" {
			t.Errorf("%s: trusts %v (%v), want the one named java", file, all, err)
		}
	}
}

func TestStore_ErrorsNameTheFileAndTheRemedy(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, x := range []struct {
		store Store
		want  string
	}{
		{Store{Location: dir + "/none"}, "no such file"},
		{Store{Location: "testdata/cert.pem"}, "it has no private key"},
		{Store{Location: "testdata/trust.jks", Password: "secret-jks"}, "it has no private key"},
		{Store{Location: "testdata/encrypted.pem"}, "it is encrypted, and no password is given"},
		{Store{Location: "testdata/oldencrypted.pem", Password: "secret-pem"}, "openssl pkcs8 -topk8"},
		{Store{Location: "testdata/key.jceks", Password: "secret-jks"}, "-deststoretype PKCS12"},
		{Store{Location: "testdata/key.jks", Type: "BCFKS"}, "type BCFKS is not read"},
		{Store{Location: "testdata/key.jks", PasswordFile: dir + "/gone"}, "gone: no such file"},
		{Store{Location: write("empty.pem", "")}, "it has no PEM block"},
		{Store{Location: write("cut.p12", "0\x82\x01")}, "as a store with a key"},
		{Store{Location: write("cut.jks", "\xfe\xed\xfe\xed\x00\x00\x00\x02")}, "cut.jks"},
		{Store{Location: write("big.pem", strings.Repeat("x", maxFileSize+1))}, "larger than"},
		{Store{Location: write("two.pem", read(t, "testdata/cert.pem")+read(t, "testdata/pkcs1.pem"))},
			"its first certificate, of CN=java,O=zk-lite, is not that of its private key"},
	} {
		if _, err := x.store.readKey(); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.store, err, x.want)
		}
	}
	if _, _, err := (&Store{Location: "testdata/key.p12", Password: "secret-p12"}).readTrusted(); err == nil ||
		!strings.Contains(err.Error(), "keytool -importcert") {
		t.Errorf("a key store as a trust store: %v", err)
	}
	s := Store{Location: "testdata/key.jks", PasswordFile: write("password", "secret-jks\r\nmore\n")}
	if _, err := s.readKey(); err != nil {
		t.Errorf("a password in a file: %v", err)
	}
}

// Unreadable files were left out without a message: an authority, whose clients were refused then, and a list of
// revoked certificates, after which those certificates were admitted again.
func TestRegression_Store_LeavesNothingOut(t *testing.T) {
	cert, key := read(t, "testdata/cert.pem"), read(t, "testdata/pkcs1.pem")
	joined := "a block has to begin on a line of its own"
	for name, x := range map[string]struct{ text, want string }{
		"joined without a line end":     {strings.TrimSpace(cert) + cert, joined},
		"key and certificate joined":    {strings.TrimSpace(key) + cert, joined},
		"cut off":                       {cert + cert[:len(cert)-40], "2 blocks begin in it, of which 1 can be read"},
		"a damaged line":                {cert + strings.Replace(cert, "M", "*", 1), "2 blocks begin in it, of which 1 can be read"},
		"a line is missing":             {cert + dropLine(cert), "certificate"},
		"with a byte order mark":        {"\ufeff" + cert, ""},
		"with text between":             {"subject=a\n" + cert + "\nissuer=b\n" + cert + "more\n", ""},
		"with a carriage return a line": {strings.ReplaceAll(cert+cert, "\n", "\r\n"), ""},
	} {
		_, err := parsePEM([]byte(x.text), "")
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(strings.ToLower(err.Error()), x.want)) {
			t.Errorf("%s: got error %v, want %q", name, err, x.want)
		}
	}
}

// dropLine is a PEM block without its third line.
func dropLine(block string) string {
	lines := strings.SplitAfter(block, "\n")
	return strings.Join(append(lines[:2:2], lines[3:]...), "")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func FuzzStore(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) == 0 {
		f.Fatalf("files %v, error %v; want at least one", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		switch s := (&Store{}); s.kind(text) {
		case PEM:
			_, _ = parsePEM(text, "") // with a password, time would be what the file asks for
		case JKS:
			_, _ = parseJKS(text, "secret-jks")
		}
	})
}
