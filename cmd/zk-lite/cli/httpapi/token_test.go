package httpapi

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The token of a server on this machine is found by its file, which must be for that port, and readable by no one
// else.
func TestDo_LocalToken(t *testing.T) {
	dir := t.TempDir()
	var named string // by the server
	at, _ := served(t, func(w http.ResponseWriter, r *http.Request, n int64) {
		if r.Header.Get("Authorization") == "Bearer secret" {
			ok(w, r, n)
			return
		}
		w.Header().Set("Zk-Token-File", named)
		refuse(w, 401, "")
	})
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good/admin.token", "secret\n"+u.Port()+"\n", 0o600)
	link := filepath.Join(dir, "admin.token")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		good:                      true,
		"":                        false,
		link:                      false,
		dir + "/gone/admin.token": false,
		write("id_rsa", "secret\n"+u.Port(), 0o600):           false,
		write("other/admin.token", "secret\n1", 0o600):        false,
		write("open/admin.token", "secret\n"+u.Port(), 0o644): false,
	} {
		named = path
		for _, r := range []*Request{get, once} {
			if err := New([]string{at}, patience, nil).JSON(t.Context(), r, nil); (err == nil) != want {
				t.Errorf("%s with %s: got %v, want success: %v", r.Method, path, err, want)
			}
		}
	}
	// Which file cannot be used, and why, was not said.
	for path, want := range map[string]string{
		dir + "/gone/admin.token": "/gone/admin.token: no such file", dir + "/open/admin.token": "can be read by others",
		dir + "/other/admin.token": "is not for port " + u.Port(), link: "is no regular file", "": "",
	} {
		named = path
		var p *Problem
		err := New([]string{at}, patience, nil).JSON(t.Context(), get, nil)
		if !errors.As(err, &p) || (p.NoToken == nil) != (want == "") || want != "" && !strings.Contains(p.NoToken.Error(), want) {
			t.Errorf("%q: got %v, %+v, want a problem with %q", path, err, p, want)
		}
	}
	named = good
	// Where anyone is answered, the token is sent if it was looked for.
	var proofs []string
	var file string
	open, _ := served(t, func(w http.ResponseWriter, r *http.Request, n int64) {
		if proofs = append(proofs, r.Header.Get("Authorization")); n == 2 {
			w.Header().Set("Zk-Token-File", file)
			refuse(w, 401, "")
			return
		}
		ok(w, r, n)
	})
	if u, err = url.Parse(open); err != nil {
		t.Fatal(err)
	}
	file = write("another/admin.token", "secret\n"+u.Port()+"\n", 0o600)
	asked := New([]string{open}, patience, nil)
	for range 2 {
		if err := asked.JSON(t.Context(), get, nil); err != nil {
			t.Fatal(err)
		}
		if len(proofs) == 1 {
			asked.LocalAdministrator(t.Context())
		}
	}
	if want := []string{"", "", "Bearer secret", "Bearer secret"}; !slices.Equal(proofs, want) {
		t.Errorf("proved %q, want %q", proofs, want)
	}
	c := New([]string{at}, patience, nil)
	c.User, c.Password = "a", "b"
	if err := c.JSON(t.Context(), get, nil); err == nil {
		t.Error("somebody with credentials of his own became another")
	}
	if token, _ := localToken("http://192.0.2.1:"+u.Port(), &http.Response{Header: http.Header{tokenHeader: {good}}}); token != "" {
		t.Error("the token was sent to another machine")
	}
}

// Nothing that is in a token can leave the page's script, or the address's fragment.
func TestLogin_Page_Escapes(t *testing.T) {
	page := string((&Login{URL: "http://127.0.0.1:8080", Token: `"</script><b>&#'`}).Page())
	if want := `replace("http://127.0.0.1:8080/ui/#login=%22%3C%2Fscript%3E%3Cb%3E%26%23%27")`; !strings.Contains(page, want) {
		t.Errorf("the page is %s, want it to have %s", page, want)
	}
}
