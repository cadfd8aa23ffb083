package znode

import (
	"bytes"
	"cmp"
	"slices"
)

// Condition compares an attribute of a znode with Number or, OfData, with Data. A comparison with a znode that does not
// exist is false, whatever the relation, except OfExistence.
type Condition struct {
	Path   string
	Of     Attribute
	Is     Relation
	Number int64
	Data   []byte // null is the same as empty
}

// Attribute is what a Condition compares. The numbers are stored in the log.
type Attribute uint8

// The attributes. A znode's mzxid stands for its data, and the pzxid for the list of its children: neither recurs when
// the znode is deleted and created.
const (
	OfExistence Attribute = iota + 1 // 1 or 0
	OfVersion
	OfMzxid
	OfPzxid
	OfChildren // how many there are
	OfOwner    // the session of an ephemeral; 0: it is none
	OfData
)

// attributes has their names, as HTTP has them.
var attributes = [...]string{"", "exists", "version", "mzxid", "pzxid", "children", "owner", "data"}

// String is the attribute's name as HTTP has it.
func (a Attribute) String() string { return attributes[a] }

// Relation is how the attribute must compare. The numbers are stored in the log.
type Relation uint8

// The relations.
const (
	Equal Relation = iota + 1
	NotEqual
	Less
	Greater
)

// relations has their signs.
var relations = [...]string{"", "=", "!=", "<", ">"}

// String is the relation's sign.
func (r Relation) String() string { return relations[r] }

// RelationOf returns the relation with a sign.
func RelationOf(sign string) (r Relation, ok bool) {
	i := slices.Index(relations[1:], sign)
	return Relation(i + 1), i >= 0
}

// Known reports whether this build knows the attribute and the relation.
func (c *Condition) Known() bool {
	return c.Of >= OfExistence && c.Of <= OfData && c.Is >= Equal && c.Is <= Greater
}

// Holds reports whether c is true.
//
// Errors: ErrNoAuth (READ), ErrBadArguments for an invalid path.
func (t *Tree) Holds(c *Condition, ids []ID) (bool, Error) {
	if ValidatePath(c.Path) != nil {
		return false, ErrBadArguments
	}
	data, stat, code := t.Get(c.Path, ids)
	exists := int64(1)
	switch {
	case code == ErrNoNode && c.Of == OfExistence:
		exists = 0
	case code == ErrNoNode:
		return false, OK
	case code != OK:
		return false, code
	}
	have := [...]int64{
		OfExistence: exists, OfVersion: int64(stat.Version), OfMzxid: int64(stat.Mzxid), OfPzxid: int64(stat.Pzxid),
		OfChildren: int64(stat.NumChildren), OfOwner: int64(stat.EphemeralOwner), OfData: 0,
	}
	order := cmp.Compare(have[c.Of], c.Number)
	if c.Of == OfData {
		order = bytes.Compare(data, c.Data)
	}
	switch c.Is {
	case Equal:
		return order == 0, OK
	case NotEqual:
		return order != 0, OK
	case Less:
		return order < 0, OK
	}
	return order > 0, OK
}
