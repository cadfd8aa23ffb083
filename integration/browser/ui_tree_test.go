package browser

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// TestUI_Tree_EachButton changes znodes by every button of the tree, and undoes it.
func TestUI_Tree_EachButton(t *testing.T) {
	anew(t, "/buttons", "one\ntwo\n")
	p := uiOf(t, "tree/buttons")
	p.heading("buttons")
	if !p.disabled("Edit") {
		t.Error("who has not logged in can press Edit")
	}
	p.login("alice:secret")
	p.press("Edit")
	p.fill("Data", "one\nthree\n")
	p.press("Review")
	p.until(`document.querySelector(".diff .minus")?.textContent.includes("two") && document.querySelector(".diff .plus").textContent.includes("three")`)
	if c := p.text("dialog .curl pre"); !strings.Contains(c, "curl -X PUT -u 'alice' -H 'If-Match: \"0x") || strings.Contains(c, "secret") {
		t.Errorf("the command is %s", c)
	}
	p.press("Write")
	p.said("/buttons is at version 1 now.")
	wantData(t, "/buttons", "one\nthree\n")
	p.press("Undo")
	p.said("/buttons has its data of before again.")
	wantData(t, "/buttons", "one\ntwo\n")

	for _, mode := range []string{"persistent", "container", "ttl", "ephemeral"} {
		p.show("tree/buttons")
		p.heading("buttons")
		p.press("Create below")
		p.fill("Name", mode)
		p.choose("Kind", mode)
		p.fill("Data", "made")
		p.press("Create")
		p.said("/buttons/" + mode + " is created.")
		p.heading(mode)
		if about := must(t, "GET", "/v1/znodes/buttons/"+mode+"?about&consistency=linearizable", ""); !strings.Contains(about, `"kind":"`+mode+`"`) {
			t.Errorf("%s: about is %s, want that kind", mode, about)
		}
	}
	p.press("Undo")
	p.said("is deleted again.")

	p.show("tree/buttons/persistent")
	p.heading("persistent")
	p.press("Permissions")
	p.fill("Entries", "world:anyone:r,auth::cdrwa")
	p.press("Set")
	p.said("The permissions of /buttons/persistent are set.")
	if acl := must(t, "GET", "/v1/znodes/buttons/persistent?acl&consistency=linearizable", ""); !strings.Contains(acl, `"id":"alice:`) {
		t.Errorf("the ACL is %s, want one of alice", acl)
	}
	p.press("Undo")
	p.said("has its permissions of before again.")

	p.show("tree/buttons")
	p.heading("buttons")
	p.until(`document.querySelector('[aria-label="Children of /buttons"]')`)
	p.press("Delete")
	p.until(`document.querySelector("dialog .what")?.textContent.includes("znodes")`)
	p.do(chromedp.Click(`dialog input[type="checkbox"]`))
	p.press("Delete")
	p.said("/buttons is deleted")
	wantGone(t, "/buttons")
	p.press("Undo")
	p.said("is created again")
	wantData(t, "/buttons/persistent", "made")
}

// TestUI_Tree_Revisions looks what a znode was, goes back, also with what is below, undoes it, and has values forgotten.
func TestUI_Tree_Revisions(t *testing.T) {
	anew(t, "/past", "one\n")
	must(t, "PUT", "/v1/znodes/past", "two\n", "bob:x")
	must(t, "POST", "/v1/znodes/past/new", "")
	p := uiOf(t, "tree/past")
	p.press("Revisions")
	p.until(`document.querySelectorAll('ol[aria-label="Revisions"] li').length === 2`)
	if first := p.text(`ol[aria-label="Revisions"] li`); !strings.Contains(first, "changed") || !strings.Contains(first, "by bob") || !strings.Contains(first, "two") {
		t.Errorf("the newest revision is shown as %q, want bob's change to two", first)
	}
	p.until(`![...document.querySelectorAll("dialog button")].some((b) => b.textContent === "Go back")`) // no one has logged in
	p.press("Close")
	p.login("alice:secret")
	back := func() {
		t.Helper()
		p.press("Revisions")
		p.do(chromedp.Click(`ol[aria-label="Revisions"] li:last-child button`))
		p.until(`document.querySelector('ul[aria-label="The plan"]')?.textContent.includes("set /past")`)
		p.until(`document.querySelector(".diff .plus").textContent.includes("one")`)
	}
	back()
	must(t, "PUT", "/v1/znodes/past", "between\n")
	p.press("Go back")
	p.until(`document.querySelector("dialog .error")?.textContent.includes("changed meanwhile")`)
	wantData(t, "/past", "between\n")
	p.press("Cancel")
	back()
	p.do(chromedp.Click(`dialog input[type="checkbox"]`))
	p.until(`document.querySelector('ul[aria-label="The plan"]')?.textContent.includes("delete /past/new")`)
	p.press("Go back")
	p.said("/past is as it was at")
	wantData(t, "/past", "one\n")
	wantGone(t, "/past/new")
	p.press("Undo")
	p.said("/past is as it was before that.")
	wantData(t, "/past", "between\n")
	wantData(t, "/past/new", "")
	p.press("Revisions")
	p.press("Forget the former ones")
	p.press("Forget")
	p.said("The former values of /past are forgotten.")
	if all := must(t, "GET", "/v1/znodes/past?revisions&consistency=linearizable", ""); strings.Count(all, `"purged":true`) != 4 {
		t.Errorf("the revisions are %s, want four purged ones and the present one", all)
	}
}

// TestUI_Tree_TwoEditors: the second writer gets a warning, sees both values, and may
// overwrite.
func TestUI_Tree_TwoEditors(t *testing.T) {
	anew(t, "/editors", "before")
	p := uiOf(t, "tree/editors")
	p.login("alice:secret")
	p.press("Edit")
	p.fill("Data", "mine")
	p.press("Review")
	must(t, "PUT", "/v1/znodes/editors", "theirs")
	p.press("Write")
	p.until(`document.querySelector("dialog .error")`)
	wantData(t, "/editors", "theirs")
	p.press("Compare mine with theirs")
	p.until(`document.querySelector(".diff .minus")?.textContent.includes("theirs")`)
	p.press("Write")
	p.said("/editors is at version 2 now.")
	wantData(t, "/editors", "mine")
}

// TestUI_Tree_ReadOnly: a user who may only read gets no further by any button.
func TestUI_Tree_ReadOnly(t *testing.T) {
	anew(t, "/readonly?acl=world:anyone:r,auth::cdrwa", "theirs", "owner:x")
	must(t, "POST", "/v1/znodes/readonly/child?acl=world:anyone:r,auth::cdrwa", "", "owner:x")
	before := must(t, "GET", "/v1/znodes/readonly?acl", "", "owner:x") + must(t, "GET", "/v1/znodes/readonly", "", "owner:x")
	p := uiOf(t, "tree/readonly")
	for _, name := range []string{"Edit", "Create below", "Permissions", "Delete", "Import"} {
		if !p.disabled(name) {
			t.Errorf("who has not logged in can press %s", name)
		}
	}
	p.login("mallory:x")
	refused := func(action string) {
		t.Helper()
		p.press(action)
		p.until(`document.querySelector("dialog .error")?.textContent.includes("not permitted")`)
		p.press("Cancel")
	}
	p.press("Edit")
	p.fill("Data", "mine")
	p.press("Review")
	refused("Write")
	p.press("Create below")
	p.fill("Name", "x")
	refused("Create")
	p.press("Permissions")
	p.fill("Entries", "world:anyone:cdrwa")
	refused("Set")
	p.press("Delete")
	p.do(chromedp.Click(`dialog input[type="checkbox"]`))
	refused("Delete")
	file := filepath.Join(t.TempDir(), "x.jsonl")
	if err := os.WriteFile(file, []byte(`{"format":"zk-lite-export-1","root":"/x"}
{"path":"","data":"","encoding":"utf-8","acl":["world:anyone:r"]}
{"path":"/n","data":"","encoding":"utf-8","acl":["world:anyone:r"]}
{"end":2}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.press("Import")
	p.until(`document.querySelector('dialog input[type="file"]')`)
	p.do(chromedp.SetUploadFiles(`dialog input[type="file"]`, []string{file}))
	p.until(`document.querySelector("dialog .what").textContent.includes("1 znode")`)
	refused("Import")
	if after := must(t, "GET", "/v1/znodes/readonly?acl", "", "owner:x") + must(t, "GET", "/v1/znodes/readonly", "", "owner:x"); after != before {
		t.Errorf("a refused import changed /readonly; before:\n%s\nafter:\n%s", before, after)
	}
}

// TestUI_Tree_Hostile: names and data that are markup, reorder text, or are large, are shown literally.
func TestUI_Tree_Hostile(t *testing.T) {
	anew(t, "/hostile", "")
	names := map[string]string{ // and how the page writes them
		`<img src=x onerror=alert(1)>`: `<img src=x onerror=alert(1)>`, "exe.\u202egpj": `exe.\u{202e}gpj`, "שלום": "שלום",
		`"><script>alert(1)`: `"><script>alert(1)`, "a b%2Fc?d#e&f": "a b%2Fc?d#e&f", "{constructor}": "{constructor}",
	}
	for name := range names {
		must(t, "POST", "/v1/znodes/hostile/"+url.PathEscape(name), "<b>"+name)
	}
	p := uiOf(t, "tree/hostile")
	for _, want := range names {
		p.show("tree/hostile")
		p.heading("hostile")
		p.until(fmt.Sprintf(`[...document.querySelectorAll(".row bdi")].some((e) => e.textContent === %s)`, quote(want)))
		p.do(chromedp.Evaluate(fmt.Sprintf(`[...document.querySelectorAll(".row")].find((e) => e.querySelector("bdi").textContent === %s).click()`, quote(want)), nil))
		p.heading(want)
		p.until(fmt.Sprintf(`document.querySelector(".data pre")?.textContent === %s`, quote("<b>"+want)))
	}
	if eval[bool](p, `Boolean(document.querySelector("img, script:not([src]), main b"))`) {
		t.Error("a name has become markup")
	}
	p.login("alice:secret")
	for name, c := range map[string]struct{ data, as, want string }{
		"nul":    {"a\x00b", "text", `a\u{0}b`},
		"bytes":  {"\xff\x00", "hex", "00000000  ff 00"},
		"number": {`{"n":9007199254740993123,"e":{},"a":[1]}`, "JSON", `"n": 9007199254740993123,`},
		"empty":  {`{"e":{},"s":"{ }"}`, "JSON", `"e": {},`},
		"large":  {strings.Repeat("0123456789abcde\n", 1<<16-1), "text", "0123456789abcde\n0123456789abcde"},
	} {
		must(t, "POST", "/v1/znodes/hostile/"+name, c.data)
		p.show("tree/hostile/" + name)
		p.heading(name)
		p.press(c.as)
		p.until(fmt.Sprintf(`document.querySelector(".data pre")?.textContent.includes(%s)`, quote(c.want)))
	}
	p.show("tree/hostile/large")
	p.heading("large")
	p.press("Show all")
	p.until(`document.querySelector(".data pre").textContent.length === (1 << 20) - 16`)
	p.press("Edit")
	p.fill("Data", "small")
	p.press("Review")
	p.press("Write")
	p.said("is at version 1")
	p.press("Undo")
	p.said("of before again")
	wantData(t, "/hostile/large", strings.Repeat("0123456789abcde\n", 1<<16-1))
}

// TestUI_Tree_Leaf: a znode without children stays among its siblings and has no empty list; its JSON is indented unasked,
// and is above the fold of a telephone; siblings that come appear.
func TestUI_Tree_Leaf(t *testing.T) {
	anew(t, "/leaves", "[not JSON")
	must(t, "POST", "/v1/znodes/leaves/here", `{"a":1,"b":[2]}`)
	must(t, "POST", "/v1/znodes/leaves/other", "other")
	p := uiOf(t, "tree/leaves/here")
	p.heading("here")
	lists := func(path, want string) {
		t.Helper()
		p.until(fmt.Sprintf(`[...document.querySelectorAll('[aria-label="Children of %s"] .row')].map((r) =>
			(r.ariaCurrent ? ">" : "") + r.querySelector("bdi").textContent).join() === %s`, path, quote(want)))
	}
	lists("/leaves", ">here,other")
	p.until(`document.querySelector('.above [role="listbox"]').ariaLabel === "Children of /"`)
	p.until(fmt.Sprintf(`document.querySelector(".data pre").textContent === %s`, quote("{\n  \"a\": 1,\n  \"b\": [\n    2\n  ]\n}")))
	must(t, "POST", "/v1/znodes/leaves/late", "")
	lists("/leaves", ">here,late,other")
	p.width(400)
	if bottom := eval[float64](p, `(scrollTo(0, 0), document.querySelector(".data pre").getBoundingClientRect().bottom)`); bottom > 700 {
		t.Errorf("the data ends %v px below the top of a window of 400", bottom)
	}
	p.width(1280)
	p.do(chromedp.Evaluate(`document.querySelector('[aria-label="Children of /leaves"] .row:last-child').click()`, nil))
	p.heading("other")
	lists("/leaves", "here,late,>other")
	must(t, "POST", "/v1/znodes/leaves/other/below", "")
	lists("/leaves/other", "below")
	lists("/leaves", "here,late,>other")
	p.show("tree/leaves")
	p.heading("leaves")
	p.says(".data pre", "[not JSON")
	lists("/leaves", "here,late,other")
}

// TestUI_Subtree exports, imports and compares.
func TestUI_Subtree(t *testing.T) {
	anew(t, "/from", "from")
	anew(t, "/into", "into")
	for _, path := range []string{"from/a", "from/a/b", "from/bytes"} {
		data := path
		if path == "from/bytes" {
			data = "\xff"
		}
		must(t, "POST", "/v1/znodes/"+path, data)
	}
	p := uiOf(t, "tree/from")
	dir := p.downloads()
	p.login("alice:secret")
	p.press("Export")
	p.said("4 znodes exported.")
	wait.Until(t, "the file is there", func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "from.jsonl"))
		return err == nil && strings.HasSuffix(string(data), "{\"end\":4}\n")
	})
	give := func() {
		t.Helper()
		p.until(`document.querySelector('dialog input[type="file"]')`)
		p.do(chromedp.SetUploadFiles(`dialog input[type="file"]`, []string{filepath.Join(dir, "from.jsonl")}))
	}
	p.show("tree/into")
	p.heading("into")
	p.press("Import")
	give()
	p.until(`document.querySelector("dialog .what").textContent.includes("3 znodes")`)
	p.press("Import")
	p.said("3 znodes imported below /into.")
	wantData(t, "/into/a/b", "from/a/b")
	wantData(t, "/into/bytes", "\xff")
	p.press("Compare")
	p.fill("With the znode", "/from")
	p.press("Compare")
	p.until(`document.querySelector("dialog [role=status]")?.textContent.includes("1 difference")`) // the topmost one's data
	must(t, "DELETE", "/v1/znodes/into/a/b", "")
	must(t, "PUT", "/v1/znodes/into/a", "other")
	give()
	p.press("Compare")
	p.until(`document.querySelector("dialog [role=status]")?.textContent.includes("/a/b: only there")`)
	if found := p.text("dialog [role=status]"); !strings.Contains(found, "/a: other data") {
		t.Errorf("the comparison is %q, want other data of /a", found)
	}
}

// TestUI_Search finds by name, data and owner.
func TestUI_Search(t *testing.T) {
	anew(t, "/search", "")
	for _, name := range []string{"needle-1", "needle-2", "hay"} {
		must(t, "POST", "/v1/znodes/search/"+name, "data of "+name)
	}
	p := uiOf(t, "tree/search")
	p.heading("search")
	p.do(chromedp.Evaluate(`[...document.querySelectorAll("a")].find((a) => a.textContent === "search below it").click()`, nil))
	p.heading("Search")
	p.fill("Name or data", "needle")
	p.press("Search")
	p.until(`document.querySelector("[role=status]").textContent.startsWith("2 znodes found, of ")`)
	p.fill("Name or data", "of hay")
	p.press("Search")
	p.until(`document.querySelector("#found").textContent.startsWith("/search/hay")`)
	p.do(chromedp.Click("#found a"))
	p.heading("hay")
}
