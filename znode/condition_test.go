package znode

import "testing"

// A condition compares one attribute in each relation; with a znode that does not exist all are false but those of
// existence, and one that may not be read is an error.
func TestTree_Holds(t *testing.T) {
	tree, x := NewTree(), &Txn{Zxid: 7, Session: 5, Identities: []ID{{Scheme: "digest", ID: "u:h"}}}
	mustCreate(t, tree, x, &CreateRequest{Path: "/a", Data: []byte("m"), ACL: OpenACL})
	mustCreate(t, tree, x, &CreateRequest{Path: "/a/e", Mode: Ephemeral, ACL: OpenACL})
	mustCreate(t, tree, x, &CreateRequest{Path: "/secret", ACL: []ACL{{PermAll, ID{Scheme: "digest", ID: "u:h"}}}})
	x.Zxid = 8
	mustCreate(t, tree, x, &CreateRequest{Path: "/a/f", ACL: OpenACL})
	for name, same := range map[string]Condition{
		"existence": {Path: "/a", Of: OfExistence, Number: 1},
		"absence":   {Path: "/x", Of: OfExistence, Number: 0},
		"version":   {Path: "/a", Of: OfVersion, Number: 0},
		"mzxid":     {Path: "/a", Of: OfMzxid, Number: 7},
		"pzxid":     {Path: "/a", Of: OfPzxid, Number: 8},
		"children":  {Path: "/a", Of: OfChildren, Number: 2},
		"owner":     {Path: "/a/e", Of: OfOwner, Number: 5},
		"data":      {Path: "/a", Of: OfData, Data: []byte("m")},
		"null":      {Path: "/a/f", Of: OfData, Data: []byte{}},
	} {
		for _, d := range []int64{-1, 0, 1} { // the attribute's distance from what it is compared with
			c := same
			if c.Number -= d; c.Of == OfData && d != 0 {
				if c.Data = []byte("l"); d < 0 || name == "null" {
					c.Data = []byte("z")
				}
			}
			less := d < 0 || d > 0 && name == "null" // nothing is less than null
			for is, want := range map[Relation]bool{Equal: d == 0, NotEqual: d != 0, Less: less, Greater: d > 0 && !less} {
				c.Is = is
				if got, code := tree.Holds(&c, nil); got != want || code != OK {
					t.Errorf("%s, %+v: %v, %v, want %v", name, c, got, code, want)
				}
			}
			c.Path = "/x"
			if got, code := tree.Holds(&c, nil); c.Of != OfExistence && (got || code != OK) {
				t.Errorf("%s of a znode that does not exist: %v, %v, want false", name, got, code)
			}
			c.Path = "/secret"
			if got, code := tree.Holds(&c, nil); got || code != ErrNoAuth {
				t.Errorf("%s of a znode that may not be read: %v, %v, want NOAUTH", name, got, code)
			}
			c.Path = "a/"
			if got, code := tree.Holds(&c, nil); got || code != ErrBadArguments {
				t.Errorf("%s of no path: %v, %v, want BADARGUMENTS", name, got, code)
			}
		}
	}
}
