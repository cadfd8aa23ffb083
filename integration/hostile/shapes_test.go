package hostile_test

import (
	"flag"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

var everything = flag.Bool("hostile.all", false,
	"all pairs of extremes, the largest transactions, what is known to fail, and how long others wait without an attacker")

// The znodes that requests are about: the attacker's, and those of others.
const (
	small   = "/hostile/small"   // the znode of usual requests
	large   = "/hostile/large"   // has largeData
	wide    = "/hostile/wide"    // has wideChildren children with names of wideName bytes
	guarded = "/hostile/guarded" // has an ACL of guardedACL entries
	room    = "/hostile/room"    // where creates go
	fresh   = room + "/new"

	others = "/innocent"
)

// frameRoom is how much of the largest frame the fields at their extremes may take together, in bytes.
const frameRoom = wire.DefaultMaxFrame - 1000

// shape is a request and its extremes.
type shape struct {
	op     wire.OpCode
	fields []string // those at an extreme, with its name
	build  func() wire.Request
}

func (s *shape) String() string { return s.op.String() + " " + strings.Join(s.fields, ", ") }

// lastOpCode is above our own requests, which begin with 1000.
const lastOpCode = 1100

// opcodes are all that a client may send.
func opcodes() (all []wire.OpCode) {
	for op := wire.OpCode(-100); op <= lastOpCode; op++ {
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
		} else if f.IsExported() && (f.Type != reflect.TypeFor[bool]() || f.Name != "Read") {
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
		case "Watch":
			f.SetBool(true) // which leaves a watch
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
		case "Paths":
			f.Set(reflect.ValueOf([]string{small}))
		case "If":
			f.Set(reflect.ValueOf(conditionsOf(small, 1)))
		case "Ops", "Then", "Else":
			f.Set(reflect.ValueOf(opsOf(suboperations(op)[0], 1, nil)))
		}
	}
	return q
}

// hasOps reports whether a request has operations, of which the gate sends fewer than there is room for.
func hasOps(op wire.OpCode) bool {
	return op == wire.OpMulti || op == wire.OpMultiRead || op == wire.OpBranch
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
			if strings.Contains(s.String(), "=long") && !hasOps(op) && n < frameRoom {
				t.Errorf("%s has %d bytes, and room for %d", s, n, frameRoom)
			}
		}
		doubles += len(pairs(op))
	}
	t.Logf("%d opcodes, %d requests with one field at an extreme, %d with two", len(opcodes()), singles, doubles)
}
