package hostile_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// extreme is a value of one kind of field. size is how many bytes of the request it may take.
type extreme struct {
	name  string
	value func(size int) any
}

// extremes returns the extremes of a field's kind; none for a new kind.
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
	case kind == reflect.TypeFor[[]znode.Condition]():
		return conditionExtremes()
	case name == "Else": // as Then, and never carried out with it
		return []extreme{{"checks", func(size int) any { return opsOf(wire.OpCheck, size, nil) }}}
	case kind == reflect.TypeFor[[]wire.MultiOp]():
		return opsExtremes(op)
	}
	switch kind.Kind() {
	case reflect.String:
		return []extreme{longString}
	case reflect.Pointer: // to a string
		return []extreme{{"long", func(size int) any { s := strings.Repeat("s", size); return &s }}}
	case reflect.Bool:
		return constants(false)
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

// longPath returns a path of that many bytes, another one each time.
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

// aclBytes is the size of an entry of a list whose scheme has four letters and whose name has none.
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

// conditionBytes is the size of a condition on the data of a znode, without path and data.
const conditionBytes = 24

func conditionExtremes() []extreme {
	return []extreme{
		{"none", func(int) any { return []znode.Condition(nil) }},
		{"same", func(size int) any { return conditionsOf(large, size/(conditionBytes+len(large))) }},
		{"missing", func(size int) any {
			list := conditionsOf("", size/(conditionBytes+len("/0000000")))
			for i := range list {
				list[i].Path = fmt.Sprintf("/%07d", i)
			}
			return list
		}},
		{"long", func(size int) any {
			return []znode.Condition{{Path: large, Of: znode.OfData, Is: znode.Less, Data: make([]byte, size-conditionBytes-len(large))}}
		}},
	}
}

// conditionsOf compares the data of a znode, many times.
func conditionsOf(path string, n int) []znode.Condition {
	list := make([]znode.Condition, n)
	for i := range list {
		list[i] = znode.Condition{Path: path, Of: znode.OfData, Is: znode.NotEqual}
	}
	return list
}

// suboperations are the allowed operations of a multi, a multiRead, or a branch.
func suboperations(op wire.OpCode) (all []wire.OpCode) {
	for sub := wire.OpCode(-100); sub <= lastOpCode; sub++ {
		if op != wire.OpMultiRead && sub.InMulti() || op != wire.OpMulti && sub.InMultiRead() {
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
