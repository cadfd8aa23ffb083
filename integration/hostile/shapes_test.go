package hostile_test

import (
	"flag"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

var everything = flag.Bool("hostile.all", false,
	"all pairs of extremes, the largest transactions, what is known to fail, and how long others wait without an attacker")

// The znodes that requests are about: the attacker's, and those of others.
const (
	small   = "/hostile/small"   // what a usual request is about
	large   = "/hostile/large"   // has largeData
	wide    = "/hostile/wide"    // has wideChildren children with names of wideName bytes
	guarded = "/hostile/guarded" // has an ACL of guardedACL entries
	room    = "/hostile/room"    // where creates go
	fresh   = room + "/new"

	largeData, wideChildren, wideName, guardedACL = 900_000, 10_000, 86, 900

	others = "/innocent"
)

// frameRoom is how much of the largest frame the fields at their extremes may take together, in bytes.
const frameRoom = wire.DefaultMaxFrame - 1000

// shape is a request, with what is extreme about it.
type shape struct {
	op     wire.OpCode
	fields []string // those at an extreme, with its name
	build  func() wire.Request
}

func (s *shape) String() string { return s.op.String() + " " + strings.Join(s.fields, ", ") }

// extreme is a value of one kind of field. size is how many bytes of the request it may take.
type extreme struct {
	name  string
	value func(size int) any
}

// opcodes are all that a client may send.
func opcodes() (all []wire.OpCode) {
	for op := wire.OpCode(-100); op <= 1000; op++ {
		if op.ClientRequest() {
			all = append(all, op)
		}
	}
	return all
}

// fieldsOf returns the fields of a record, those of embedded records included.
func fieldsOf(v reflect.Value) (names []string, fields []reflect.Value) {
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Anonymous {
			n, all := fieldsOf(v.Field(i))
			names, fields = append(names, n...), append(fields, all...)
		} else if f.Type != reflect.TypeFor[bool]() || f.Name != "Read" {
			names, fields = append(names, f.Name), append(fields, v.Field(i))
		}
	}
	return names, fields
}

// usual returns a request that a client could send.
func usual(op wire.OpCode) wire.Request {
	q := wire.NewRequest(op)
	names, fields := fieldsOf(reflect.ValueOf(q).Elem())
	for i, f := range fields {
		switch names[i] {
		case "Mode":
			if op == wire.OpCreateTTL {
				f.SetInt(int64(znode.PersistentTTL))
			}
		case "Path", "PrefixPath":
			f.SetString(small)
			if creates(op) || op == wire.OpDelete {
				f.SetString(fresh)
			}
			if op == wire.OpSetACL {
				f.SetString(room + "/listed")
			}
		case "Data", "Token":
			f.SetBytes([]byte("x"))
		case "TTLMillis":
			f.SetInt(time.Hour.Milliseconds())
		case "Version":
			f.SetInt(int64(znode.AnyVersion))
		case "Scheme":
			f.SetString("digest")
		case "Auth":
			f.SetBytes([]byte("hostile:hostile"))
		case "ACL":
			f.Set(reflect.ValueOf(znode.OpenACL))
		case "Ops":
			f.Set(reflect.ValueOf(opsOf(suboperations(op)[0], 1, nil)))
		}
	}
	return q
}

func creates(op wire.OpCode) bool {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return true
	}
	return false
}

// single returns the usual request of an opcode and all with one field at an extreme; pairs those with two. They are
// built when they are sent, since most take a megabyte.
func single(op wire.OpCode) (all []*shape) {
	all = append(all, &shape{op, nil, func() wire.Request { return usual(op) }})
	names, fields := fieldsOf(reflect.ValueOf(usual(op)).Elem())
	for i, f := range fields {
		for _, x := range extremes(op, names[i], f.Type()) {
			all = append(all, &shape{op, []string{names[i] + "=" + x.name}, func() wire.Request {
				q := usual(op)
				set(q, i, x, frameRoom)
				return q
			}})
		}
	}
	return all
}

func pairs(op wire.OpCode) (all []*shape) {
	names, fields := fieldsOf(reflect.ValueOf(usual(op)).Elem())
	for i := range fields {
		for j := range i {
			for _, x := range extremes(op, names[i], fields[i].Type()) {
				for _, y := range extremes(op, names[j], fields[j].Type()) {
					label := []string{names[j] + "=" + y.name, names[i] + "=" + x.name}
					all = append(all, &shape{op, label, func() wire.Request {
						q := usual(op)
						set(q, i, x, frameRoom/2)
						set(q, j, y, frameRoom/2)
						return q
					}})
				}
			}
		}
	}
	return all
}

func set(q wire.Request, field int, x extreme, size int) {
	_, fields := fieldsOf(reflect.ValueOf(q).Elem())
	fields[field].Set(reflect.ValueOf(x.value(size)).Convert(fields[field].Type()))
}

// extremes returns those of a field's kind; none for a kind that is new.
func extremes(op wire.OpCode, name string, kind reflect.Type) []extreme {
	switch {
	case name == "Path" || name == "PrefixPath":
		return pathExtremes()
	case name == "Scheme":
		return append(constants("", "ip", "x509", "sasl", "ensemble", "world", "auth", "super"), longString)
	case name == "Mode" || name == "Type":
		return constants[int32](-1, 1, 2, 3, 4, 5, 6, math.MaxInt32)
	case kind == reflect.TypeFor[[]znode.ACL]():
		return aclExtremes()
	case kind == reflect.TypeFor[[]wire.MultiOp]():
		return opsExtremes(op)
	}
	switch kind.Kind() {
	case reflect.String:
		return []extreme{longString}
	case reflect.Pointer: // to a string
		return []extreme{{"long", func(size int) any { s := strings.Repeat("s", size); return &s }}}
	case reflect.Bool:
		return constants(true)
	case reflect.Int32:
		return constants[int32](math.MinInt32, 0, math.MaxInt32)
	case reflect.Int64:
		return constants[int64](math.MinInt64, 0, math.MaxInt64)
	case reflect.Slice:
		switch kind.Elem().Kind() {
		case reflect.Uint8:
			return []extreme{{"none", func(int) any { return []byte(nil) }}, {"long", func(size int) any { return make([]byte, size) }}}
		case reflect.String:
			return pathListExtremes()
		}
	}
	return nil
}

var longString = extreme{"long", func(size int) any { return strings.Repeat("s", size) }}

func constants[T any](values ...T) (all []extreme) {
	for _, v := range values {
		all = append(all, extreme{fmt.Sprint(v), func(int) any { return v }})
	}
	return all
}

func pathExtremes() []extreme {
	return append(constants("", "/", large, wide, guarded, others, others+"/data", others+"/container", others+"/acl"),
		extreme{"long", func(size int) any { return longPath(size) }},
		extreme{"deep", func(size int) any { return strings.Repeat("/d", size/2) }},
		extreme{"missing", func(int) any { return "/nowhere/x" }})
}

var longPaths atomic.Int64

// longPath returns a path of so many bytes, another one each time.
func longPath(size int) string {
	const digits = 10
	return fmt.Sprintf("/%s%0*d", strings.Repeat("n", size-1-digits), digits, longPaths.Add(1))
}

func pathListExtremes() []extreme {
	return []extreme{
		{"distinct", func(size int) any {
			list := make([]string, size/12)
			for i := range list {
				list[i] = fmt.Sprintf("/%07d", i) // and four bytes of length
			}
			return list
		}},
		{"same", func(size int) any {
			list := make([]string, size/(4+len(wide)))
			for i := range list {
				list[i] = wide
			}
			return list
		}},
		{"long", func(size int) any { return []string{longPath(size - 5)} }},
	}
}

// aclBytes is what an entry of a list takes whose scheme has four letters and whose name has none.
const aclBytes = 16

func aclExtremes() []extreme {
	list := func(scheme string, n int) any {
		acl := make([]znode.ACL, n)
		for i := range acl {
			acl[i] = znode.ACL{Perms: znode.Perms(i)<<5 | znode.PermAll, ID: znode.ID{Scheme: scheme}}
		}
		return acl
	}
	return []extreme{
		{"none", func(int) any { return []znode.ACL{} }},
		{"distinct", func(size int) any { return list("x509", size/aclBytes) }},
		{"identities", func(size int) any { return list("auth", size/aclBytes) }},
		{"few identities", func(int) any { return list("auth", 2) }},
		{"most", func(size int) any { return list("x509", min(znode.MaxACL, size/aclBytes)) }},
		{"same", func(size int) any {
			acl := list("x509", size/aclBytes).([]znode.ACL)
			for i := range acl {
				acl[i].Perms = znode.PermAll
			}
			return acl
		}},
		{"long", func(size int) any {
			return []znode.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "x509", ID: strings.Repeat("i", size-aclBytes)}}}
		}},
	}
}

// suboperations are what a multi, or a multiRead, may consist of.
func suboperations(op wire.OpCode) (all []wire.OpCode) {
	for sub := wire.OpCode(-100); sub <= 1000; sub++ {
		if op == wire.OpMulti && sub.InMulti() || op == wire.OpMultiRead && sub.InMultiRead() {
			all = append(all, sub)
		}
	}
	return all
}

// opsExtremes are, for each operation that may be part of it, as many as there is room for: usual ones, and with one
// field at an extreme, which takes an eighth of the room if its size matters. The gate has time for a quarter of that,
// which shows already what grows faster than the request.
func opsExtremes(op wire.OpCode) (all []extreme) {
	part := 4
	if *everything {
		part = 1
	}
	for _, sub := range suboperations(op) {
		for _, s := range append([]*extreme{nil}, subExtremes(sub)...) {
			name := sub.String()
			if s != nil {
				name += " with " + s.name
			}
			all = append(all, extreme{name, func(size int) any { return opsOf(sub, size/part, s) }})
		}
	}
	return all
}

// subExtremes has the field's name in that of the extreme.
func subExtremes(op wire.OpCode) (all []*extreme) {
	names, fields := fieldsOf(reflect.ValueOf(usual(op)).Elem())
	for i, f := range fields {
		for _, x := range extremes(op, names[i], f.Type()) {
			all = append(all, &extreme{names[i] + "=" + x.name, func(size int) any {
				q := usual(op)
				set(q, i, x, size/8)
				return q
			}})
		}
	}
	return all
}

// opsOf returns as many operations as fit into size bytes, and at least one. Creates have names of their own.
func opsOf(op wire.OpCode, size int, x *extreme) (ops []wire.MultiOp) {
	const header, digits = 9, 5
	q := usual(op)
	if x != nil {
		q = x.value(size).(wire.Request)
	}
	n := max(1, size/(header+digits+len(q.Append(nil))))
	for i := range n {
		ops = append(ops, wire.MultiOp{Type: op, Request: numbered(q, i)})
	}
	return ops
}

func numbered(q wire.Request, n int) wire.Request {
	switch q := q.(type) {
	case *wire.CreateRequest:
		if q.Path == fresh {
			other := *q
			other.Path = fmt.Sprint(fresh, n)
			return &other
		}
	case *wire.CreateTTLRequest:
		if q.Path == fresh {
			other := *q
			other.Path = fmt.Sprint(fresh, n)
			return &other
		}
	}
	return q
}

// TestShapes_EveryOpcode fails for an opcode or a field that the hostile client cannot make anything of.
func TestShapes_EveryOpcode(t *testing.T) {
	singles, doubles := 0, 0
	for _, op := range opcodes() {
		q := usual(op)
		names, fields := fieldsOf(reflect.ValueOf(q).Elem())
		for i, f := range fields {
			if len(extremes(op, names[i], f.Type())) == 0 {
				t.Errorf("%s: the hostile client knows no extremes of a field of type %s (%s)", op, f.Type(), names[i])
			}
		}
		for _, s := range single(op) {
			singles++
			n := len(s.build().Append(nil))
			if n > wire.DefaultMaxFrame-8 {
				t.Errorf("%s has %d bytes, which no server takes", s, n)
			}
			if strings.Contains(s.String(), "=long") && op != wire.OpMulti && op != wire.OpMultiRead && n < frameRoom {
				t.Errorf("%s has %d bytes, and room for %d", s, n, frameRoom)
			}
		}
		doubles += len(pairs(op))
	}
	t.Logf("%d opcodes, %d requests with one field at an extreme, %d with two", len(opcodes()), singles, doubles)
}
