package api_test

import (
	"strings"
	"testing"
)

// rightsOf is what /v1/acl answers for identities: the operations that they may do, and for each what decides.
func rightsOf(c *client, path string, identities ...string) (may string, decides map[string]string) {
	c.Helper()
	decides = map[string]string{}
	var yes []string
	target := "/v1/acl" + path + "?identity=" + strings.Join(identities, "&identity=")
	for _, x := range c.get(target).want(200).field("rights").([]any) {
		r := x.(map[string]any)
		operation := r["operation"].(string)
		if r["may"] == true {
			yes = append(yes, operation)
		}
		entry, _ := r["entry"].(string)
		decides[operation] = r["of"].(string) + " " + entry + " " + r["why"].(string)
	}
	return strings.Join(yes, ","), decides
}

// What is explained is what the client may do: the explained client tries each.
func TestACL_Explain(t *testing.T) {
	c := newClient(t, shared().urls[0])
	alice, bob := c.with(basic("alice:a")), c.with(basic("bob:b"))
	r := root(t, c)
	top := strings.TrimPrefix(r, "/v1/znodes")
	alice.post(r+"/app?acl=auth::rwa,world:anyone:r,ip:127.0.0.0/8:c", "").want(201)
	bob.post(r+"/app/b?acl=auth::rwcda", "").want(201)
	path := top + "/app"

	may, decides := rightsOf(alice, path, "digest:alice")
	if may != "read,write,set the ACL,delete" || decides["write"] != path+" digest:alice:x:rwa by this entry" ||
		decides["delete"] != top+" world:anyone:cdrwa by this entry" ||
		decides["create children"] != path+"  no entry names them with c; entries with it for others: 1" {
		t.Errorf("alice may %s: %q", may, decides)
	}
	alice.put(r+"/app", "x").want(200)
	alice.delete(r+"/app/b").problem(403, "NOAUTH") // d of the parent

	for identities, want := range map[string]string{
		"digest:bob":              "read,delete",
		"digest:bob ip:127.0.0.1": "read,create children,delete",
		"ip:10.0.0.1":             "read,delete",
		"world:anyone":            "read,delete",
		"digest:super":            "read,write,create children,delete children,set the ACL,delete",
		"digest:super:lK75jTNcA%2BU9vtVEw5vB51mj/w4=": "read,write,create children,delete children,set the ACL,delete",
		"super:x": "read,write,create children,delete children,set the ACL,delete",
		"digest:alice:AAAAAAAAAAAAAAAAAAAAAAAAAAA=": "read,delete", // of another password
		"sasl:super": "read,delete",
	} {
		if may, decides := rightsOf(alice, path, strings.Fields(identities)...); may != want {
			t.Errorf("%s may %s, want %s: %q", identities, may, want, decides)
		}
	}
	_, decides = rightsOf(alice, path, "digest:super")
	if !strings.Contains(decides["write"], "DigestAuthenticationProvider.superDigest") {
		t.Errorf("the super user: %q", decides)
	}

	// Who sees no hashes can try none: a digest is compared by its user alone.
	if may, _ := rightsOf(bob, path, "digest:alice:AAAAAAAAAAAAAAAAAAAAAAAAAAA="); may != "read,delete" {
		t.Errorf("a digest of another password: %s, want read,delete", may)
	}
	if may, _ := rightsOf(bob, path, "digest:alice"); may != "read,write,set the ACL,delete" {
		t.Errorf("alice, as bob sees it: %s", may)
	}

	// Neither ACL is shown to a client that may not read it.
	alice.get("/v1/acl"+path+"/b?identity=digest:bob").problem(403, "NOAUTH")
	alice.post(r+"/mine?acl=auth::rwcda", "").want(201)
	alice.post(r+"/mine/open", "").want(201)
	may, decides = rightsOf(bob, top+"/mine/open", "digest:bob")
	if may != "read,write,create children,delete children,set the ACL" ||
		!strings.Contains(decides["delete"], "you may not read the ACL of "+top+"/mine") {
		t.Errorf("below a hidden parent: %s, %q", may, decides)
	}

	// What does not exist is created by the parent's ACL.
	if may, decides = rightsOf(c, path+"/new", "digest:bob"); may != "" || len(decides) != 1 ||
		!strings.HasPrefix(decides["create"], path+" ") {
		t.Errorf("a znode that does not exist: may %q, %q", may, decides)
	}
	c.get("/v1/acl"+path+"/no/parent?identity=digest:bob").problem(404, "NONODE")
	if _, decides := rightsOf(c, "/", "world:anyone"); len(decides) != 5 {
		t.Errorf("of the root: %q, want nothing about deleting it", decides)
	}
	for _, wrong := range []string{
		"", "identity=", "identity=alice", "identity=digest:alice:secret", "identity=ip:10.0.0.0/8", "identity=auth:",
		"identity=world:someone", strings.Repeat("identity=sasl:a&", 21),
	} {
		a := c.get("/v1/acl"+path+"?"+wrong).problem(400, "BADARGUMENTS").has("parameter", "identity")
		if strings.Contains(string(a.body), "secret") {
			t.Errorf("%s: a password is repeated: %s", wrong, a.body)
		}
	}
}
